//! The names that are reserved for Milepost: stages neither read nor write them.

use crate::base::path::{RelPath, Root};

/// The folder of Milepost's own files, in the workspace and in the project.
pub const OWN: &str = ".milepost";

/// The folder of the manifests, in the workspace.
pub const MANIFESTS: &str = "manifests";

/// Returns what Milepost reserves a path for, or `None` if a stage may read or write it. Case is ignored, because some file systems
/// ignore it.
pub fn reserved(root: Root, path: &RelPath) -> Option<&'static str> {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let is = |part: &str, name: &str| part.eq_ignore_ascii_case(name);
    if parts.iter().any(|part| is(part, OWN)) {
        return Some("Milepost's own folder");
    }
    let first = parts.first().filter(|_| root == Root::Workspace);
    if first.is_some_and(|first| is(first, MANIFESTS)) {
        return Some("the folder of the manifests");
    }
    // A project contains workspaces, and a workspace may contain others.
    if let [.., manifests, _, page] = parts.as_slice()
        && is(manifests, MANIFESTS)
        && is_named(page, "page_")
        && page.to_ascii_lowercase().ends_with(".sha256")
    {
        return Some("a manifest");
    }
    let is_checkpoint = |part: &&str| {
        is_named(part, "stage_") && checkpoint_number(&part.to_ascii_lowercase()).is_some()
    };
    let mut names = first.into_iter().chain(parts.last());
    names.any(is_checkpoint).then_some("a checkpoint")
}

fn is_named(part: &str, start: &str) -> bool {
    let begin = part.get(..start.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(start))
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
            ("stage_12_complete.json", true, true),
            ("Stage_1_complete.json", true, true),
            ("stage_1_complete.json/x", true, false),
            ("stage_x_complete.json", false, false),
            ("stage_01_complete.json", false, false),
            ("stage_+1_complete.json", false, false),
            ("other/stage_1_complete.json", true, true),
            ("other/manifests/parse/page_0001.sha256", true, true),
            ("other/manifests/deployment.yaml", false, false),
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
