//! The programs of commands and of `cli` agents: what they are is a fact, and their environment is the same everywhere.

use crate::support::required::{self, require};
use crate::support::{Project, pipe};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

/// Writes a program.
fn program(project: &Project, path: &str, text: &str) {
    project.write(path, text);
    set_mode(project, path, 0o755);
}

fn set_mode(project: &Project, path: &str, mode: u32) {
    std::fs::set_permissions(project.at(path), PermissionsExt::from_mode(mode)).unwrap();
}

/// A project with a command. `DIR` is the folder of the project.
fn fixture(command: &str) -> Project {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"programs\"\n[params]\ntool = \"tool\"\n",
        ),
        ("workspace/inputs/a.txt", "a\n"),
    ]);
    let folder = project.path().display().to_string();
    project.write(
        "stages/1_upper.toml",
        format!(
            "[each.note]\npath = \"inputs/*.txt\"\n[step]\ncommand = {}\n[outputs]\nupper = \"outputs/{{{{ note.stem }}}}.txt\"\n",
            command.replace("DIR", &folder)
        ),
    );
    program(&project, "bin/tool", "#!/bin/sh\ntr a-z A-Z < $1 > $2\n");
    project.env(
        "PATH",
        &format!("{folder}/bin:/usr/local/bin:/usr/bin:/bin"),
    );
    project
}

/// The lines of a plan about changes.
fn changes(project: &Project) -> Vec<String> {
    let (_, said) = project.milepost(&["plan"]);
    let lines = said.lines().map(str::trim);
    let lines = lines.filter(|line| line.contains("changed"));
    lines
        .map(|line| line.split(" (").next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_program_that_changes_makes_its_batches_out_of_date() {
    for (command, name) in [
        (
            r#"["DIR/bin/tool", "{{ note.path }}", "{{ paths.upper }}"]"#,
            "DIR/bin/tool",
        ),
        (
            r#"["tool", "{{ note.path }}", "{{ paths.upper }}"]"#,
            "tool",
        ),
        (
            r#"["{{ params.tool }}", "{{ note.path }}", "{{ paths.upper }}"]"#,
            "tool",
        ),
        (
            r#"["sh", "DIR/bin/tool", "{{ note.path }}", "{{ paths.upper }}"]"#,
            "DIR/bin/tool",
        ),
        (
            "'true; A=1 DIR/bin/tool {{ note.path }} {{ paths.upper }}'",
            "DIR/bin/tool",
        ),
        ("'echo | tool {{ note.path }} {{ paths.upper }}'", "tool"),
        (
            "'sh DIR/bin/tool {{ note.path }} {{ paths.upper }}'",
            "DIR/bin/tool",
        ),
        (
            r#"["sh", "-ec", "if true; then tool {{ note.path }} {{ paths.upper }}; fi"]"#,
            "tool",
        ),
    ] {
        let project = fixture(command);
        let name = name.replace("DIR", &project.path().display().to_string());
        project.run(&[]).expect(0, &["upper/a"]);
        // The same bytes are the same program, whatever their time.
        program(&project, "bin/tool", "#!/bin/sh\ntr a-z A-Z < $1 > $2\n");
        project.run(&[]).expect(0, &[]);
        project.run(&[]).expect(0, &[]);
        program(&project, "bin/tool", "#!/bin/sh\ntr a-z B-Z < $1 > $2\n");
        assert_eq!(
            changes(&project),
            [format!("program {name} changed")],
            "{command}"
        );
        project.run(&[]).expect(0, &["upper/a"]);
        assert_eq!(project.read("workspace/outputs/a.txt"), "B\n", "{command}");
        project.run(&[]).expect(0, &[]);
        // Nothing shows that a missing program makes something else.
        project.remove("bin/tool");
        project.run(&[]).expect(0, &[]);
    }
}

#[test]
fn a_large_program_is_known_by_path_size_and_time() {
    let project = fixture(r#"["tool", "{{ note.path }}", "{{ paths.upper }}"]"#);
    let fill = |size: u64| {
        let file = std::fs::File::options()
            .write(true)
            .open(project.at("bin/tool"));
        file.unwrap().set_len(size).unwrap();
    };
    project.write("bin/tool", "#!/bin/sh\ntr a-z A-Z < $1 > $2\nexit 0\n");
    fill(16 << 20);
    project.run(&[]).expect(0, &["upper/a"]);
    project.run(&[]).expect(0, &[]);
    fill((16 << 20) + 1);
    let told = changes(&project);
    assert!(told.is_empty(), "{told:?}");
    project.run(&[]).expect(0, &["upper/a"]);
}

#[test]
fn a_program_that_depends_on_the_batch_is_not_compared() {
    let project = fixture(r#"["DIR/bin/{{ note.stem }}", "{{ note.path }}", "{{ paths.upper }}"]"#);
    program(&project, "bin/a", "#!/bin/sh\ntr a-z A-Z < $1 > $2\n");
    project.run(&[]).expect(0, &["upper/a"]);
    program(&project, "bin/a", "#!/bin/sh\ntr a-z B-Z < $1 > $2\n");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_script_that_is_no_longer_executable_stops_a_batch_before_it_starts() {
    let project = fixture(r#"["project:bin/tool", "{{ note.path }}", "{{ paths.upper }}"]"#);
    project.run(&[]).expect(0, &["upper/a"]);
    set_mode(&project, "bin/tool", 0o644);
    // What was built stays up to date.
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/b.txt", "b\n");
    let why = "`project:bin/tool` is not executable: chmod +x bin/tool";
    let (code, said) = project.milepost(&["plan"]);
    assert!(code == 1 && said.contains(why), "{said}");
    let ran = project.run(&[]);
    ran.says(why);
    assert_eq!(
        (ran.code, ran.data("attempt_started").count()),
        (1, 0),
        "{}",
        ran.output
    );
    set_mode(&project, "bin/tool", 0o755);
    project.run(&[]).expect(0, &["upper/b"]);
}

fn asking(cli: &str) -> Project {
    let project = Project::new(&[
        (
            "milepost.toml",
            &format!("name = \"asking\"\n[agents.teller]\ncli = {cli}\n"),
        ),
        (
            "stages/1_ask.toml",
            "[step]\nagent = \"teller\"\nprompt = \"ask.md\"\nanswer = \"text\"\n[outputs]\nanswer = \"outputs/answer.txt\"\n",
        ),
        ("ask.md", "Who?\n"),
    ]);
    program(&project, "tools/tell.sh", "#!/bin/sh\necho one\n");
    project
}

#[test]
fn the_script_of_a_cli_agent_is_a_file_of_the_project() {
    for cli in [
        r#"["project:tools/tell.sh"]"#,
        r#"["sh", "project:tools/tell.sh"]"#,
    ] {
        let project = asking(cli);
        project.run(&[]).expect(0, &["ask"]);
        assert_eq!(project.read("workspace/outputs/answer.txt"), "one\n");
        project.run(&[]).expect(0, &[]);
        program(&project, "tools/tell.sh", "#!/bin/sh\necho two\n");
        assert_eq!(changes(&project), ["tools/tell.sh changed"]);
        project.run(&[]).expect(0, &["ask"]);
        assert_eq!(project.read("workspace/outputs/answer.txt"), "two\n");
    }

    let project = asking(r#"["project:tools/tell.sh"]"#);
    set_mode(&project, "tools/tell.sh", 0o644);
    let ran = project.run_unplanned(&[]);
    ran.says("tools/tell.sh` is not executable: chmod +x ");
    assert_eq!((ran.code, ran.data("attempt_started").count()), (1, 0));

    let (code, said) = asking(r#"["project:tools/tall.sh"]"#).milepost(&["plan"]);
    assert!(
        code == 4 && said.contains("did you mean `project:tools/tell.sh`?"),
        "{said}"
    );
}

#[test]
fn programs_have_one_locale() {
    let mut project = fixture(
        r#"'printf %s "$LANG $LC_ALL" > {{ paths.upper }}; echo ä | tr -d "\n" | wc -m >> {{ paths.upper }}'"#,
    );
    project.env("LANG", "C");
    project.env("LC_ALL", "C");
    project.run(&[]).expect(0, &["upper/a"]);
    assert_eq!(project.read("workspace/outputs/a.txt"), "C.UTF-8 1\n");
    project.env("LANG", "de_DE.UTF-8");
    project.unset("LC_ALL");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_variable_that_is_not_utf8_is_refused() {
    let project = fixture("'printf %s \"$X\" > {{ paths.upper }}'");
    project.edit(
        "stages/1_upper.toml",
        "[outputs]",
        "env = [\"X\"]\n[outputs]",
    );
    project.edit(
        "milepost.toml",
        "[params]",
        "[env]\nX = \"default\"\n[params]",
    );
    let bytes = std::ffi::OsStr::from_bytes(b"M\xfcller");
    let with = |name: &str| {
        let mut command = project.command(&["run"]);
        let output = command.env(name, bytes).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for name in ["X", "HOME"] {
        let why = format!(
            "error: the environment variable `{name}`: expected UTF-8, found other bytes: set it to a value in UTF-8, or unset it\n"
        );
        assert_eq!(with(name), (Some(2), why));
    }
    assert_eq!(with("Y").0, Some(0));
}

#[test]
fn a_project_in_a_folder_that_is_not_utf8_is_refused() {
    let project = fixture("'true > {{ paths.upper }}'");
    let folder = project.path().join(std::ffi::OsStr::from_bytes(b"bad\xfc"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("milepost.toml"), "name = \"bad\"\n").unwrap();
    let output = project
        .command(&["run"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2)
            && said.starts_with("error: the path of the project is not UTF-8: `/")
            && said.ends_with("bad\\xfc`: rename its folder, or move the project\n"),
        "{said}"
    );
}

#[test]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    for signal in ["HUP", "INT", "TERM"] {
        let project =
            fixture("'echo > DIR/began; cat DIR/go; cp {{ note.path }} {{ paths.upper }}'");
        let pipes = ["began", "go"].map(|name| project.at(name));
        for place in &pipes {
            pipe(place);
        }
        let milepost = project.command(&["run"]);
        let mut shell = std::process::Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("trap '' {signal}; exec \"$@\""))
            .arg("sh");
        shell.arg(milepost.get_program()).args(milepost.get_args());
        shell.current_dir(project.path()).process_group(0);
        let mut running = shell.spawn().unwrap();
        assert_eq!(std::fs::read_to_string(&pipes[0]).unwrap(), "\n");
        let pid = running.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.unwrap().success());
        std::fs::write(&pipes[1], "").unwrap();
        let ended = running.wait().unwrap();
        assert_eq!((ended.code(), ended.signal()), (Some(0), None), "{signal}");
        assert_eq!(project.read("workspace/outputs/a.txt"), "a\n");
    }
}

#[test]
fn a_step_that_changes_its_input_is_named() {
    let project = fixture("'echo x >> {{ note.path }}; cp {{ note.path }} {{ paths.upper }}'");
    let ran = project.run_unplanned(&[]);
    ran.says("`inputs/a.txt` changed while it was read: run again");
    assert_eq!(ran.code, 3);
    for _ in 0..2 {
        let ran = project.run_unplanned(&[]);
        ran.says("its input inputs/a.txt changes each time it runs: if a step writes to it, let it write a copy");
        assert_eq!(ran.code, 1, "{}", ran.output);
    }
    project.edit("stages/1_upper.toml", "echo x >> {{ note.path }}; ", "");
    project.run_unplanned(&[]).expect(0, &["upper/a"]);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_folder_that_holds_the_workspace_is_refused() {
    for folder in ["workspace", "."] {
        let command = r#"["cp", "-r", "project:FOLDER", "{{ paths.upper }}"]"#;
        let project = fixture(&command.replace("FOLDER", folder));
        let ran = project.run_unplanned(&[]);
        assert_ne!(ran.code, 0, "{}", ran.output);
        let why = match folder {
            "." => "a path is empty",
            _ => {
                "`project:workspace` contains the workspace, so the outputs would be inputs: name a folder without it"
            }
        };
        ran.says(why);
        assert!(!project.exists("workspace/outputs"));
    }
}

#[test]
fn why_shows_where_a_program_is() {
    let project = fixture(r#"["tool", "{{ note.path }}", "{{ paths.upper }}"]"#);
    project.run(&[]).expect(0, &["upper/a"]);
    let (_, said) = project.milepost(&["why", "upper/a"]);
    let place = format!("…  {}", project.at("bin/tool").display());
    let line = said.lines().find(|line| line.contains("program tool"));
    assert!(line.is_some_and(|line| line.ends_with(&place)), "{said}");
}

#[test]
fn a_folder_in_an_argument_stands_for_the_files_below_it() {
    for include in [r#""-I", "project:include""#, r#""-Iproject:include", """#] {
        let project = fixture(&format!(
            r#"["sh", "-ec", 'cat "${{1#-I}}$2/x.h" "${{1#-I}}$2/deep/y.h" > "$3"', "sh", {include}, "{{{{ paths.upper }}}}"]"#
        ));
        if include.starts_with("\"-I\"") {
            project.edit("stages/1_upper.toml", "\"-I\", ", "\"\", ");
        }
        project.write("include/x.h", "one\n");
        project.write("include/deep/y.h", "two\n");
        project.run(&[]).expect(0, &["upper/a"]);
        assert_eq!(project.read("workspace/outputs/a.txt"), "one\ntwo\n");
        project.run(&[]).expect(0, &[]);
        project.write("include/deep/y.h", "three\n");
        assert_eq!(
            changes(&project),
            ["input project:include/deep/y.h changed"]
        );
        project.run(&[]).expect(0, &["upper/a"]);
        assert_eq!(project.read("workspace/outputs/a.txt"), "one\nthree\n");
        project.run(&[]).expect(0, &[]);
        project.write("include/new.h", "");
        project.run(&[]).expect(0, &["upper/a"]);
        project.remove("include/new.h");
        project.run(&[]).expect(0, &["upper/a"]);
        // Python writes such files beside those that it imports.
        project.write("include/__pycache__/x.pyc", "");
        project.run(&[]).expect(0, &[]);
    }
}

#[test]
fn what_looks_like_a_file_of_the_project_is_none_in_a_value() {
    // A row, a list of rows and a parameter, as a client may set it.
    let project = fixture(
        r#"["sh", "-c", 'printf "%s " "$@" > "$0"', "{{ paths.upper }}", "{{ row.x }}", "{{ row.list }}", "{{ params.tool }}", "sub:x", "subproject:x", "--a={{ 'project:' }}b"]"#,
    );
    project.edit(
        "stages/1_upper.toml",
        "[each.note]\npath = \"inputs/*.txt\"",
        "[each.row]\nfrom = \"inputs/rows.json\"\nselect = \".[]\"\nkey = \".k\"",
    );
    project.edit("stages/1_upper.toml", "{{ note.stem }}", "{{ row.k }}");
    project.write(
        "workspace/inputs/rows.json",
        r#"[{"k": "1", "x": "project:workspace/.milepost/workspace.json", "list": ["project:bin/tool", "project:"]}]"#,
    );
    project
        .run(&["--set", "tool=project:milepost.toml"])
        .expect(0, &["upper/1"]);
    assert_eq!(
        project.read("workspace/outputs/1.txt"),
        "project:workspace/.milepost/workspace.json project:bin/tool project: project:milepost.toml sub:x subproject:x --a=project:b "
    );
    // Behind a declared `project:` a value names a file, but none of Milepost's own.
    project.edit(
        "stages/1_upper.toml",
        "\"{{ row.x }}\"",
        "\"project:{{ row.x }}\"",
    );
    project.edit(
        "workspace/inputs/rows.json",
        "project:workspace/.m",
        "workspace/.m",
    );
    let ran = project.run(&[]);
    ran.says("workspace/.milepost/workspace.json");
    assert_eq!(ran.code, 1, "{}", ran.output);
    project.edit(
        "workspace/inputs/rows.json",
        "workspace/.milepost/workspace.json",
        "bin/tool",
    );
    project.run(&[]).expect(0, &["upper/1"]);
    project.write("bin/tool", "changed");
    project.run(&[]).expect(0, &["upper/1"]);
}

#[test]
fn a_file_of_the_project_is_not_named_in_a_script_or_without_being_there() {
    for (command, why) in [
        (
            r#"["cp", "--from=project:nosuch", "{{ paths.upper }}"]"#,
            "to pass the text itself, write --from={{ 'project:' }}nosuch",
        ),
        (
            "'sh project:bin/tool {{ note.path }} {{ paths.upper }}'",
            "`project:bin/tool` is part of a shell script, in which `project:` is not replaced",
        ),
        (
            r#"["sh", "-c", "cat -Iproject:bin {{ paths.upper }}"]"#,
            "`-Iproject:bin` is part of a shell script, in which `project:` is not replaced",
        ),
    ] {
        let (code, said) = fixture(command).milepost(&["plan"]);
        assert!(code == 4 && said.contains(why), "{command}: {said}");
    }
}

#[test]
fn the_files_of_a_depfile_are_dependencies() {
    for depfile in ["deps.d", "{{ paths.deps }}"] {
        let place = if depfile == "deps.d" {
            depfile
        } else {
            "{{ paths.deps }}"
        };
        let project = fixture(&format!(
            r#"["sh", "-ec", 'cat "$1/lib/x.h" "$2" > "$3"; printf "out: %s %s/lib/../lib/x.h \\\\\n /usr/include/none.h %s\nx.h:\n" "$2" "$1" "$3" > "$4"', "sh", "DIR", "{{{{ note.path }}}}", "{{{{ paths.upper }}}}", "{place}"]"#
        ));
        project.edit(
            "stages/1_upper.toml",
            "[outputs]",
            &format!("depfile = \"{depfile}\"\n[outputs]"),
        );
        if depfile != "deps.d" {
            project.edit(
                "stages/1_upper.toml",
                "[outputs]",
                "[outputs]\ndeps = { path = \"intermediate/{{ note.stem }}.d\", schema = false }",
            );
        }
        project.write("lib/x.h", "x\n");
        project.write("lib/y.h", "y\n");
        let old = std::fs::File::options()
            .write(true)
            .open(project.at("lib/x.h"));
        old.unwrap()
            .set_modified(crate::support::long_ago())
            .unwrap();
        project.run(&[]).expect(0, &["upper/a"]);
        assert_eq!(project.read("workspace/outputs/a.txt"), "x\na\n");
        project.run(&[]).expect(0, &[]);
        project.run(&[]).expect(0, &[]);
        project.write("lib/y.h", "z\n");
        project.run(&[]).expect(0, &[]);
        project.write("lib/x.h", "z\n");
        assert_eq!(changes(&project), ["dependency project:lib/x.h changed"]);
        let old = std::fs::File::options()
            .write(true)
            .open(project.at("lib/x.h"));
        old.unwrap()
            .set_modified(crate::support::long_ago())
            .unwrap();
        project.run(&[]).expect(0, &["upper/a"]);
        assert_eq!(project.read("workspace/outputs/a.txt"), "z\na\n");
        project.run(&[]).expect(0, &[]);
        // A file that the program no longer reads is no dependency any more.
        project.edit("stages/1_upper.toml", "cat \"$1/lib/x.h\" ", "cat ");
        project.edit("stages/1_upper.toml", "%s/lib/../lib/x.h", "%s/lib/y.h");
        project.run(&[]).expect(0, &["upper/a"]);
        project.write("lib/x.h", "w\n");
        project.run(&[]).expect(0, &[]);
        project.remove("lib/y.h");
        assert_eq!(project.run(&[]).code, 0);
    }
}

#[test]
fn a_folder_in_a_depfile_stands_for_the_files_below_it() {
    let project = fixture(
        r#"["sh", "-ec", 'cat "$1/lib/in/x.h" > "$2"; printf "out: %s/lib\n" "$1" > deps.d', "sh", "DIR", "{{ paths.upper }}"]"#,
    );
    let stage = "stages/1_upper.toml";
    project.edit(stage, "[outputs]", "depfile = \"deps.d\"\n[outputs]");
    project.write("lib/in/x.h", "x\n");
    project.run(&[]).expect(0, &["upper/a"]);
    project.run(&[]).expect(0, &[]);
    project.write("lib/in/x.h", "y\n");
    assert_eq!(changes(&project), ["dependency project:lib/in/x.h changed"]);
    project.run(&[]).expect(0, &["upper/a"]);
    assert_eq!(project.read("workspace/outputs/a.txt"), "y\n");
}

#[test]
fn a_depfile_that_names_no_file_fails_its_batch_only() {
    for name in ["pipe", "link", "dead"] {
        let project = fixture(&format!(
            r#"["sh", "-ec", 'cp "$2" "$3"; test "${{2##*/}}" = b.txt || printf "out: %s/lib/{name}\n" "$1" > deps.d; test -e deps.d || echo "out: x" > deps.d', "sh", "DIR", "{{{{ note.path }}}}", "{{{{ paths.upper }}}}"]"#
        ));
        let stage = "stages/1_upper.toml";
        project.edit(stage, "[outputs]", "depfile = \"deps.d\"\n[outputs]");
        project.write("workspace/inputs/b.txt", "b\n");
        project.write("lib/x.h", "x\n");
        pipe(&project.at("lib/pipe"));
        std::os::unix::fs::symlink("/etc/hostname", project.at("lib/link")).unwrap();
        std::os::unix::fs::symlink("nothing", project.at("lib/dead")).unwrap();
        let ran = project.run(&["-k"]);
        assert_eq!(ran.code, 1, "{name}: {}", ran.output);
        ran.says("upper/a failed: PATH: depfile: `");
        assert_eq!(project.read("workspace/outputs/b.txt"), "b\n", "{name}");
    }
}

#[test]
fn an_output_is_no_hard_link_to_an_input() {
    let project = fixture("'ln {{ note.path }} {{ paths.upper }}'");
    project.run(&[]).expect(0, &["upper/a"]);
    project.write("workspace/inputs/a.txt", "b\n");
    assert_eq!(project.read("workspace/outputs/a.txt"), "a\n");
    project.run(&[]).expect(0, &["upper/a"]);
    assert_eq!(project.read("workspace/outputs/a.txt"), "b\n");
}

#[test]
fn programs_end_where_the_parent_ignores_the_ends_of_children() {
    let project = fixture("'cp {{ note.path }} {{ paths.upper }}'");
    let milepost = project.command(&["run"]);
    // Dash and bash set no handler of their own for it.
    let mut python = std::process::Command::new("python3");
    python.arg("-c").arg(
        "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execv(sys.argv[1], sys.argv[1:])",
    );
    python.arg(milepost.get_program()).args(milepost.get_args());
    python.current_dir(project.path());
    let ended = python.output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(project.read("workspace/outputs/a.txt"), "a\n");
}

#[test]
fn a_file_beyond_the_size_limit_is_an_error_with_its_place() {
    let project = fixture("'cp {{ note.path }} {{ paths.upper }}'");
    project.write("workspace/inputs/a.txt", "a".repeat(1 << 20));
    let milepost = project.command(&["run"]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("ulimit -f 1; exec \"$@\"").arg("sh");
    shell.arg(milepost.get_program()).args(milepost.get_args());
    let ended = shell.current_dir(project.path()).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.signal(), None, "{said}");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn programs_run_in_a_pid_namespace_of_another_process_group() {
    let project = fixture("'cp {{ note.path }} {{ paths.upper }}'");
    require!(required::program(
        "unshare",
        &["--pid", "--fork", "--mount-proc", "true"]
    ));
    let milepost = project.command(&["run"]);
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc"]);
    unshare
        .arg(milepost.get_program())
        .args(milepost.get_args());
    let ended = unshare.current_dir(project.path()).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(project.read("workspace/outputs/a.txt"), "a\n");
}

#[test]
fn an_output_of_a_program_is_of_its_format() {
    for (name, text, is_valid) in [
        ("json", "\u{feff}{\"a\": 1}", true),
        ("json", "", false),
        ("json", "<html>", false),
        ("ndjson", "{}\n[1]\n", true),
        ("ndjson", "{}\nno", false),
        ("toml", "a = 1", true),
        ("toml", "a", false),
        ("csv", "a;b\n", true),
        ("csv", "", false),
        ("txt", "", true),
    ] {
        let project = fixture("'cp {{ note.path }} {{ paths.upper }}'");
        project.edit("stages/1_upper.toml", "}}.txt\"", &format!("}}}}.{name}\""));
        project.write("workspace/inputs/a.txt", text);
        let ran = project.run(&[]);
        assert_eq!(
            ran.code,
            i32::from(!is_valid),
            "{name} {text}: {}",
            ran.output
        );
        if !is_valid {
            ran.says("; if the file has another format, declare it, such as `format = \"text\"`");
        }
    }
}

#[test]
fn a_depfile_that_is_not_written_fails_its_batch() {
    let project = fixture("'cp {{ note.path }} {{ paths.upper }}'");
    project.edit(
        "stages/1_upper.toml",
        "[outputs]",
        "depfile = \"deps.d\"\n[outputs]",
    );
    let ran = project.run(&[]);
    ran.says("depfile `deps.d`: No such file or directory");
    assert_eq!(ran.code, 1);
}

#[test]
fn a_file_is_no_text() {
    for (command, name) in [
        (r#"["cp", "{{ note }}", "{{ paths.upper }}"]"#, "note"),
        ("'cp {{note}} {{ paths.upper }}'", "note"),
        ("'cp {{- note -}} {{ paths.upper }}'", "note"),
    ] {
        let (code, said) = fixture(command).milepost(&["plan"]);
        let why = format!("did you mean `{name}.path`?");
        assert!(code == 4 && said.contains(&why), "{command}: {said}");
    }
    let project = fixture("'printf %s {{ note | tojson }} > {{ paths.upper }}'");
    project.run(&[]).expect(0, &["upper/a"]);
}
