//! How long the binary takes to start: with an empty project, and with one batch that is done.

use crate::Result;
use crate::book::{Bar, Book};
use crate::child::run;
use crate::turns::{Side, in_turn};
use crate::work::{Step, Work};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What `run` answers when the declarations are wrong: a project without stages is.
const NO_STAGES: i32 = 4;

/// The bar.
const START: Duration = Duration::from_millis(5);

/// Measures both.
pub fn measure(milepost: &Path, folder: &Path, rounds: usize, book: &mut Book) -> Result<()> {
    let said = folder.join("said");
    let empty = folder.join("empty");
    std::fs::create_dir_all(&empty)?;
    std::fs::write(empty.join("milepost.toml"), "name = \"empty\"\n")?;
    let one = Work::new(folder, 1);
    one.make()?;
    one.declare(Step::Copy, true)?;
    let start = |folder: &Path, accepted: &[i32]| {
        let mut command = Command::new(milepost);
        command.arg("run").current_dir(folder);
        run(&mut command, &said, accepted)
    };
    start(&one.folder, &[0])?;
    std::thread::sleep(Duration::from_secs(3));
    start(&one.folder, &[0])?;
    let series = in_turn(
        rounds,
        &mut [
            Side::new("milepost", |_| start(&empty, &[NO_STAGES])),
            Side::new("milepost, one batch that is done", |_| {
                start(&one.folder, &[0])
            }),
            Side::new("true", |_| run(&mut Command::new("true"), &said, &[0])),
        ],
    )?;
    let wall = series[0].wall();
    book.keep("start", 0, series);
    book.times("start", 0, wall, "5 ms:", START, Bar::always(1.0));
    std::fs::remove_dir_all(empty)?;
    one.remove()
}
