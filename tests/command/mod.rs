//! Commands run to their end: exit, output, environment, and that nothing is left behind.

#[cfg(target_os = "linux")]
mod ending;
mod shell;
#[cfg(target_os = "linux")]
mod survivors;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use milepost_engine::steps::command::{
    CommandSpec, Exit, SpawnError, StartedProcess, StopSignal, adopt_orphans, run_command,
};

/// Long enough for anything that must happen on a busy machine, short enough to end a hung test.
const PATIENCE: Duration = Duration::from_mins(1);

/// Set in a process whose commands' orphans do not become its children.
const NO_ADOPTION: &str = "MILEPOST_TEST_NO_ADOPTION";

/// A stop that is set by a flag.
#[derive(Default)]
struct Flag(AtomicBool);

impl StopSignal for Flag {
    fn stopping(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn wait(&self, time: Duration) {
        std::thread::park_timeout(time);
    }
}

/// A log that sets a flag when a text has come.
struct Watched<'a> {
    bytes: Vec<u8>,
    text: &'a str,
    flag: &'a Flag,
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if String::from_utf8_lossy(&self.bytes).contains(self.text) {
            self.flag.0.store(true, Ordering::SeqCst);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A command to be run, with what most tests want.
struct Trial {
    words: Vec<String>,
    folder: tempfile::TempDir,
    env: Vec<(String, String)>,
    stdin: Option<PathBuf>,
    timeout: Duration,
    grace: Duration,
    token: String,
    may_leave: bool,
    cap: u64,
}

impl Trial {
    fn new(words: &[&str]) -> Trial {
        static ADOPT: Once = Once::new();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if std::env::var_os(NO_ADOPTION).is_none() {
            ADOPT.call_once(adopt_orphans);
        }
        let token = format!(
            "{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::SeqCst)
        );
        let path = std::env::var("PATH").unwrap();
        Trial {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            folder: tempfile::tempdir().unwrap(),
            env: vec![("PATH".to_owned(), path)],
            stdin: None,
            timeout: PATIENCE,
            grace: PATIENCE,
            token,
            may_leave: false,
            cap: 1 << 20,
        }
    }

    fn sh(script: &str) -> Trial {
        Trial::new(&["sh", "-c", script])
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run_with(
        &self,
        log: &mut dyn Write,
        stop: &Flag,
        started: &mut dyn FnMut(&StartedProcess),
    ) -> Result<Exit, SpawnError> {
        let spec = CommandSpec {
            program_and_args: &self.words,
            cwd: self.folder.path(),
            env: &self.env,
            stdin: self.stdin.as_deref(),
            timeout: self.timeout,
            grace: self.grace,
            token: &self.token,
            may_leave: self.may_leave,
            log,
            errors: None,
            log_cap: self.cap,
            live: &|_| (),
        };
        run_command(spec, stop, started)
    }

    /// Its exit and its output.
    fn run(&self) -> (Exit, String) {
        let mut log = Vec::new();
        let exit = self
            .run_with(&mut log, &Flag::default(), &mut |_| {})
            .unwrap();
        (exit, String::from_utf8(log).unwrap())
    }

    /// Runs it, and stops it as soon as its output has this text.
    fn run_until(&self, text: &str) -> (Exit, String) {
        let flag = Flag::default();
        let mut log = Watched {
            bytes: Vec::new(),
            text,
            flag: &flag,
        };
        let exit = self.run_with(&mut log, &flag, &mut |_| {}).unwrap();
        (exit, String::from_utf8(log.bytes).unwrap())
    }

    fn error(&self) -> String {
        self.run_with(&mut Vec::new(), &Flag::default(), &mut |_| {})
            .unwrap_err()
            .to_string()
    }
}

/// Waits for something that another process does.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "it never came true that {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Whether a process is there and has not ended.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// The number that a file or output holds.
fn number(text: &str) -> u32 {
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("{text:?} is no process id"))
}

fn fifo(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

#[test]
fn exit_codes() {
    assert_eq!(Trial::new(&["true"]).run(), (Exit::Code(0), String::new()));
    for code in [0, 1, 7, 255] {
        let trial = Trial::sh(&format!("echo said; exit {code}"));
        assert_eq!(trial.run(), (Exit::Code(code), "said\n".to_owned()));
    }
}

#[test]
fn signals_that_are_not_ours() {
    assert_eq!(Trial::sh("kill -KILL $$").run().0, Exit::Signal(9));
    assert_eq!(Trial::sh("kill -TERM $$").run().0, Exit::Signal(15));
}

#[test]
fn standard_input_is_the_file_or_empty() {
    let mut trial = Trial::new(&["cat"]);
    assert_eq!(trial.run(), (Exit::Code(0), String::new()));
    trial.stdin = Some(trial.file("input"));
    let error = trial.error();
    assert!(
        error.starts_with("program `cat` was not started: cannot open its standard input /"),
        "{error}"
    );
    fs::write(trial.file("input"), "from the file").unwrap();
    assert_eq!(trial.run(), (Exit::Code(0), "from the file".to_owned()));
}

#[test]
fn environment_is_what_was_given_and_the_attempt() {
    let mut trial = Trial::new(&["env"]);
    trial.env.push(("A".to_owned(), "1 = one".to_owned()));
    let (exit, output) = trial.run();
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let path = format!("PATH={}", trial.env[0].1);
    let token = format!("MILEPOST_ATTEMPT={}", trial.token);
    assert_eq!(
        (exit, lines),
        (
            Exit::Code(0),
            vec!["A=1 = one", token.as_str(), path.as_str()]
        )
    );
}

#[test]
fn it_works_in_its_folder_and_under_its_own_name() {
    let trial = Trial::sh("pwd; echo $0");
    let folder = trial.folder.path().canonicalize().unwrap();
    assert_eq!(trial.run().1, format!("{}\nsh\n", folder.display()));
}

#[test]
fn output_and_error_are_one_in_their_order() {
    let trial = Trial::sh("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
    assert_eq!(trial.run().1, "1\n2\n3\n4\n");
}

#[test]
fn bytes_that_are_no_text_survive() {
    let trial = Trial::sh(r"printf 'a\377\000\376b'");
    let mut log = Vec::new();
    trial
        .run_with(&mut log, &Flag::default(), &mut |_| {})
        .unwrap();
    assert_eq!(log, b"a\xff\0\xfeb");
}

#[test]
fn big_output_is_capped() {
    let mut trial = Trial::sh("echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end");
    trial.cap = 20;
    let expected = "begin\nxxxx\n[milepost: 4999991 bytes left out here]\nxxxxx\nend\n";
    assert_eq!(trial.run(), (Exit::Code(0), expected.to_owned()));
}

#[test]
fn a_log_that_cannot_be_written_does_not_hang_the_command() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let trial = Trial::sh("head -c 1000000 /dev/zero; touch done");
    let error = trial
        .run_with(&mut Full, &Flag::default(), &mut |_| {})
        .unwrap_err();
    assert!(matches!(error, SpawnError::Log { .. }), "{error}");
    assert!(trial.file("done").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn started_names_the_process() {
    let trial = Trial::sh("echo $$; cut -d ' ' -f 5,22 /proc/$$/stat");
    let mut log = Vec::new();
    let mut seen = Vec::new();
    trial
        .run_with(&mut log, &Flag::default(), &mut |started| {
            seen.push(started.clone());
        })
        .unwrap();
    let output = String::from_utf8(log).unwrap();
    let [started] = seen.as_slice() else {
        panic!("{seen:?}")
    };
    assert_eq!(
        output,
        format!(
            "{}\n{} {}\n",
            started.pid, started.group, started.start_time
        )
    );
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(started.boot_id, boot_id.trim());
}

#[test]
fn each_thread_gets_its_own_exit_codes() {
    let threads = [0, 100].map(|from| {
        std::thread::spawn(move || {
            let codes = from..from + 100;
            codes
                .map(|code| Trial::sh(&format!("exit {code}")).run().0)
                .collect::<Vec<Exit>>()
        })
    });
    let exits: Vec<Exit> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(exits, (0..200).map(Exit::Code).collect::<Vec<Exit>>());
}

#[test]
fn why_it_could_not_start() {
    let mut trial = Trial::new(&["no-such-program"]);
    trial.env = vec![("PATH".to_owned(), "/nowhere:/usr/bin".to_owned())];
    assert_eq!(
        trial.error(),
        "program `no-such-program` was not found in PATH (/nowhere:/usr/bin): install it, or name it by its path"
    );
    trial.env.clear();
    assert_eq!(
        trial.error(),
        "program `no-such-program` was not found in PATH (/usr/bin:/bin): install it, or name it by its path"
    );

    let at = |name: &str| trial.file(name).display().to_string();
    let error = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Trial {
            words,
            folder: tempfile::tempdir().unwrap(),
            ..Trial::new(&[])
        }
        .error()
    };
    assert_eq!(error(&[]), "the command is empty: name a program");
    assert_eq!(error(&["/"]), "program `/` is a folder");
    let absent = at("absent");
    assert_eq!(
        error(&[&absent]),
        format!("program `{absent}` does not exist ({absent})")
    );
    let plain = at("plain");
    fs::write(&plain, "text").unwrap();
    assert_eq!(
        error(&[&plain]),
        format!("program `{plain}` may not be executed: try `chmod +x {plain}`")
    );
    make_executable(&plain);
    assert_eq!(
        error(&[&plain]),
        format!(
            "program `{plain}` ({plain}) is not a program of this machine: a script needs a first line such as `#!/bin/sh`"
        )
    );
    let script = at("script");
    fs::write(&script, "#!/no/interpreter\n").unwrap();
    make_executable(&script);
    assert_eq!(
        error(&[&script]),
        format!(
            "program `{script}` ({script}) needs an interpreter that does not exist: see its first line (`#!`)"
        )
    );
    assert_eq!(
        error(&["true", "a\0b"]),
        "program `true` was not started: word 1 of the command contains a NUL byte; pass such data in a file"
    );
    assert_eq!(
        error(&["true", &"x".repeat(1 << 20)]),
        "program `true` was not started: its arguments and environment are longer than the system allows; hand a long list over as a file: `{{ paths.NAME | as_file }}` is the path of a file with one value a line"
    );
}

fn make_executable(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn its_working_folder_must_be_there() {
    let trial = Trial::new(&["true"]);
    let folder = trial.file("gone");
    let spec = CommandSpec {
        program_and_args: &trial.words,
        cwd: &folder,
        env: &trial.env,
        stdin: None,
        timeout: PATIENCE,
        grace: PATIENCE,
        token: &trial.token,
        may_leave: false,
        log: &mut Vec::new(),
        errors: None,
        log_cap: 10,
        live: &|_| (),
    };
    let error = run_command(spec, &Flag::default(), &mut |_| {})
        .unwrap_err()
        .to_string();
    let folder = folder.display();
    assert_eq!(
        error,
        format!("program `true` was not started: its working folder {folder} does not exist")
    );
}

#[test]
fn a_job_that_a_command_of_a_scheduler_starts_continues() {
    let started = Trial {
        may_leave: true,
        ..Trial::sh("sleep 600 > /dev/null 2>&1 & echo $!")
    };
    let (exit, output) = started.run();
    assert_eq!(exit, Exit::Code(0));
    let job = number(&output);
    assert!(runs(job));
    // The next command asks for its state.
    let asked = Trial {
        may_leave: true,
        ..Trial::sh("echo running")
    };
    assert_eq!(asked.run(), (Exit::Code(0), "running\n".to_owned()));
    assert!(runs(job));
    let pid = rustix::process::Pid::from_raw(job.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
