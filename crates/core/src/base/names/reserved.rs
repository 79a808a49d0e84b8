//! The names that are reserved for Milepost: stages neither read nor write them.

use crate::base::path::{RelPath, Root};

/// The folder of Milepost's own files, in the workspace and in the project.
pub const OWN: &str = ".milepost";

/// The folder of the manifests, in the workspace.
pub const MANIFESTS: &str = "manifests";

/// Returns what Milepost reserves a path for, or `None` if a stage may read or write it. Case is ignored, because some file systems
/// ignore it.
pub fn reserved(root: Root, path: &RelPath) -> Option<&'static str> {
    let mut parts = path.as_str().split('/');
    // A project contains workspaces, and a workspace may contain others.
    if parts.clone().any(|part| part.eq_ignore_ascii_case(OWN)) {
        return Some("Milepost's own folder");
    }
    let first = parts.next().filter(|_| root == Root::Workspace)?;
    if first.eq_ignore_ascii_case(MANIFESTS) {
        return Some("the folder of the manifests");
    }
    let starts = first
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("stage_"));
    let is_checkpoint = starts && checkpoint_number(&first.to_ascii_lowercase()).is_some();
    is_checkpoint.then_some("a checkpoint")
}

/// Returns the number in the name of a checkpoint, such as `stage_1_complete.json`; `None` for other names.
pub fn checkpoint_number(name: &str) -> Option<u32> {
    let number = name
        .strip_prefix("stage_")?
        .strip_suffix("_complete.json")?;
    let plain = !number.starts_with('0') || number == "0";
    number
        .parse()
        .ok()
        .filter(|_| plain && !number.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_reserved_names() {
        for (path, in_workspace, in_project) in [
            (".milepost/x", true, true),
            (".MilePost", true, true),
            ("workspace/.milepost/mcp-token", true, true),
            ("manifests/a.json", true, false),
            ("stage_12_complete.json", true, false),
            ("Stage_1_complete.json", true, false),
            ("stage_x_complete.json", false, false),
            ("stage_01_complete.json", false, false),
            ("stage_+1_complete.json", false, false),
            ("intermediate/stage_1_complete.json", false, false),
            ("outputs/manifests/a", false, false),
            (".milepost.toml", false, false),
        ] {
            let parsed = RelPath::parse(path).unwrap();
            let found = |root| reserved(root, &parsed).is_some();
            assert_eq!(found(Root::Workspace), in_workspace, "{path}");
            assert_eq!(found(Root::Project), in_project, "{path}");
        }
    }
}
