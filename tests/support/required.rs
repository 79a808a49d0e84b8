//! What a test needs of the machine. Where it is missing, the test is skipped and says so; in CI the test fails.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the machine lacks.
#[derive(Debug)]
pub struct Missing(pub String);

/// Returns the value of a `Result<_, Missing>`. If it is missing, reports the test as skipped and returns from the function.
macro_rules! require {
    ($needed:expr) => {
        match $needed {
            Ok(value) => value,
            Err(missing) => {
                crate::support::required::skip(&missing);
                return;
            }
        }
    };
}
pub(crate) use require;

/// Reports that a test is skipped.
///
/// # Panics
///
/// In CI: there `.ci/run` installs everything that tests need.
#[track_caller]
pub fn skip(missing: &Missing) {
    match skipped(missing, std::env::var("CI").ok().as_deref()) {
        Ok(line) => eprintln!("{line}"),
        Err(failure) => panic!("{failure}"),
    }
}

/// Returns the line that reports a skipped test, or the failure in CI.
fn skipped(Missing(what): &Missing, ci: Option<&str>) -> Result<String, String> {
    match ci {
        None | Some("" | "false") => Ok(format!("skipped: {what}")),
        Some(_) => Err(format!(
            "skipped: {what}; a skipped test fails in CI: install what is missing in `.ci/run`, or unset `CI`"
        )),
    }
}

/// Runs a program that a test needs.
pub fn program(name: &str, arguments: &[&str]) -> Result<(), Missing> {
    let output = Command::new(name)
        .args(arguments)
        .output()
        .map_err(|error| Missing(format!("there is no `{name}`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let command = [&[name], arguments].concat().join(" ");
    let err = String::from_utf8_lossy(&output.stderr);
    Err(Missing(format!("`{command}` fails: {}", err.trim())))
}

/// Returns the folder of real building models, which are too large for the repository and lie beside it.
pub fn real_models() -> Result<PathBuf, Missing> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/ifc");
    if folder.join("reference").is_dir() {
        Ok(folder)
    } else {
        Err(Missing("there is no folder ../shared/data/ifc".to_owned()))
    }
}

/// Returns the path of a real building model.
pub fn real_model(name: &str) -> Result<PathBuf, Missing> {
    Ok(real_models()?.join(name))
}

#[test]
fn a_skipped_test_fails_in_ci() {
    let missing = program("milepost-has-no-such-program", &[]).unwrap_err();
    let line = "skipped: there is no `milepost-has-no-such-program`: No such file or directory (os error 2)";
    for local in [None, Some(""), Some("false")] {
        assert_eq!(skipped(&missing, local).unwrap(), line);
    }
    let failure = format!(
        "{line}; a skipped test fails in CI: install what is missing in `.ci/run`, or unset `CI`"
    );
    for ci in ["true", "1"] {
        assert_eq!(skipped(&missing, Some(ci)).unwrap_err(), failure);
    }
    let Missing(fails) = program("sh", &["-c", "echo broken >&2; exit 1"]).unwrap_err();
    assert_eq!(fails, "`sh -c echo broken >&2; exit 1` fails: broken");
}
