//! Checkpoints and manifests match the files that they list.

use super::Project;
use milepost_core::base::digest::Digest;
use serde_json::Value;

impl Project {
    /// Checks that every output in the manifest of a stage with a checkpoint has the bytes of its digest, and that the only output
    /// of a stage matches its checkpoint.
    pub fn check_checkpoints(&self) {
        for number in 1..20 {
            let path = format!("workspace/stage_{number}_complete.json");
            if !self.exists(&path) {
                continue;
            }
            let Ok(checkpoint) = serde_json::from_str::<Value>(&self.read(&path)) else {
                continue;
            };
            assert_eq!(checkpoint["number"], number, "{checkpoint:#}");
            if let Some(only) = checkpoint["output_file"].as_str() {
                assert_eq!(
                    Digest::of(self.read_bytes(only)).to_string(),
                    checkpoint["checksums"]["output"],
                    "{path} does not match {only}"
                );
            }
            let pages = self.list(checkpoint["manifest"].as_str().unwrap());
            for page in pages {
                let page = self.read(&format!(
                    "workspace/{}/{page}",
                    checkpoint["manifest"].as_str().unwrap()
                ));
                for (digest, file) in page
                    .lines()
                    .filter(|line| !line.starts_with('#'))
                    .filter_map(|line| line.split_once("  "))
                {
                    let there = Digest::of(self.read_bytes(file)).to_string();
                    assert_eq!(
                        there,
                        format!("sha256:{digest}"),
                        "the manifest of {} does not match {file}",
                        checkpoint["stage"]
                    );
                }
            }
        }
    }

    fn read_bytes(&self, path: &str) -> Vec<u8> {
        self.bytes(&format!("workspace/{path}"))
    }
}
