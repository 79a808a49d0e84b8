//! `init` and `man` as text: the created files, and the next commands.

use crate::view::text::words::count;
use milepost_core::base::visible::visible;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::change::init::Initiated;
use milepost_engine::ops::change::man::ManPages;
use std::collections::BTreeMap;

/// The most files of a folder that are listed by name.
const NAMED: usize = 4;

/// Returns the created files, and the next commands.
pub fn init(data: &Initiated) -> String {
    let mut text = format!(
        "created a project from `{}`: {}\n",
        data.template, data.about
    );
    let folder = |file: &str| file.split_once('/').map(|(folder, _)| folder.to_owned());
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for folder in data.files.iter().filter_map(|file| folder(file)) {
        *folders.entry(folder).or_default() += 1;
    }
    for file in &data.files {
        let Some(folder) = folder(file) else {
            text.push_str(&format!("  {file}\n"));
            continue;
        };
        match folders.get(&folder) {
            Some(files) if *files > NAMED => {
                text.push_str(&format!("  {folder}/  {files} files\n"));
                // The line of the folder is printed once.
                folders.remove(&folder);
            }
            Some(_) => text.push_str(&format!("  {file}\n")),
            None => {}
        }
    }
    text.push_str("\nnext:\n");
    for command in &data.next {
        text.push_str(&format!("  {command}\n"));
    }
    text
}

/// Returns where man pages were written, and how to read them.
pub(crate) fn man_pages(pages: &ManPages) -> String {
    let folder = visible(&pages.folder);
    let count = count(pages.files.len() as u64, "man page", "man pages");
    let first = shell_word(&format!("{folder}/milepost.1"));
    format!("wrote {count} to {folder}\nhelp: read one with `man {first}`\n")
}
