//! Milepost as a library: opens a project, plans and runs it, and returns its status.
//!
//! ```
//! use milepost_engine::ops::plan::plan;
//! use milepost_engine::ops::project::Request;
//! use milepost_engine::ops::run::{RunOptions, Silent, StopFlag, run};
//!
//! let folder = std::env::temp_dir().join(format!("milepost-example-{}", std::process::id()));
//! std::fs::create_dir_all(folder.join("stages"))?;
//! std::fs::create_dir_all(folder.join("workspace/inputs"))?;
//! std::fs::write(folder.join("milepost.toml"), "name = \"example\"\n")?;
//! std::fs::write(folder.join("workspace/inputs/words.json"), r#"["b", "a"]"#)?;
//! std::fs::write(
//!     folder.join("stages/1_sort.toml"),
//!     r#"
//!     description = "Sort the words"
//!     [inputs]
//!     words = "inputs/words.json"
//!     [step]
//!     jq = "$words | sort"
//!     [outputs]
//!     sorted = { path = "outputs/sorted.json", schema = false }
//!     "#,
//! )?;
//!
//! let request = Request::new(folder.clone(), std::env::vars().collect());
//! let options = RunOptions::default();
//! assert_eq!(plan(&request, &options)?.stages[0].will.len(), 1);
//! let run = || run(&request, &options, &mut Silent, &StopFlag::new());
//! assert_eq!(run()?.stages[0].ran, 1);
//! assert_eq!(run()?.stages[0].reused, 1);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `ops` has a function for each command of `milepost`. `docs/explanation/design.md` explains the layers.

#![warn(missing_docs, unreachable_pub)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        reason = "tests write files and panic at failures"
    )
)]

pub mod ops;
pub mod run;
pub mod steps;
