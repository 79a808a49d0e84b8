//! What the figures depend on: processors, the file system of the work, the build of Milepost, the versions of the others.

use crate::tools::Installed;
use std::path::Path;

/// Prints it all.
pub fn print(folder: &Path, milepost: &Path, tools: &[Installed]) {
    println!("processors: {}", cores());
    match file_system(folder) {
        Some((kind, device)) => {
            println!("file system: {kind} on {device}, {}", folder.display());
            if matches!(kind.as_str(), "tmpfs" | "ramfs") {
                println!(
                    "note: in memory, where flushing costs nothing: no bar is held or missed here"
                );
            }
        }
        None => println!("file system: not known, {}", folder.display()),
    }
    println!(
        "milepost {}: {}, built with the profile `bench`, which is `release`, unless another was named",
        env!("CARGO_PKG_VERSION"),
        milepost.display()
    );
    for installed in tools {
        println!("{}: {}", installed.tool, installed.version);
    }
    print_load();
}

/// Prints how busy the machine is.
pub fn print_load() {
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let minutes: Vec<&str> = load.split(' ').take(3).collect();
        println!(
            "load over 1, 5 and 15 minutes, this harness included: {}",
            minutes.join(", ")
        );
    }
}

/// Processors that there are.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Kind and device of the file system that a folder lies on, where the system lists them.
fn file_system(folder: &Path) -> Option<(String, String)> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let mut best: Option<(usize, String, String)> = None;
    for line in mounts.lines() {
        let mut parts = line.split(' ');
        let (Some(device), Some(point), Some(kind)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        // A later mount at the same point lies over the earlier.
        if folder.starts_with(point) && best.as_ref().is_none_or(|best| point.len() >= best.0) {
            best = Some((point.len(), kind.to_owned(), device.to_owned()));
        }
    }
    best.map(|(_, kind, device)| (kind, device))
}
