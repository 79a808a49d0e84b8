//! Each file that a stage writes belongs to one batch, and only later stages read it.

use crate::support::Project;

const ROWS: &str = "id,date\n1,mon\n2,tue\n3,mon\n4,wed\n5,tue\n6,mon\n";

/// A stage with a batch for each row of `inputs/rows.csv`.
fn rows(output: &str, more: &str) -> Project {
    let stage = format!(
        "{more}\n[each.r]\nfrom = \"inputs/rows.csv\"\nselect = '.[]'\nkey = '.id'\n\n[step]\njq = '$r'\n\n[outputs]\nmade = {{ path = \"{output}\", schema = false }}\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"rows\"\n"),
        ("stages/1_work.toml", &stage),
        ("workspace/inputs/rows.csv", ROWS),
    ])
}

/// A stage with a batch for each text file, whose program writes to `$1`, the path of the output.
fn texts(output: &str, program: &str) -> Project {
    let stage = format!(
        "[each.f]\npath = \"inputs/*.txt\"\n\n[inputs]\nd = \"{{{{ f.path }}}}\"\n\n[step]\ncommand = [\"sh\", \"-c\", '{program}', \"sh\", \"{{{{ paths.made }}}}\", \"{{{{ f.stem }}}}\"]\n\n[outputs]\nmade = {{ path = \"{output}\", schema = false }}\n\n[policy]\non_failure = \"continue\"\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"texts\"\n"),
        ("stages/1_work.toml", &stage),
    ])
}

#[test]
fn two_batches_with_one_output_are_an_error_before_anything_runs() {
    let project = rows("outputs/{{ r.date }}.json", "");
    project.run(&[]).expect(1, &[]).says(
        "the batches `1` and `3` of stage `work` would both write `outputs/mon.json`: put what distinguishes them into the path, such as {{ r.id }}",
    );
    assert!(!project.exists("workspace/outputs"));
    let (_, plan) = project.milepost(&["plan"]);
    assert!(plan.contains("the batches `1` and `3`"), "{plan}");
    project.edit("stages/1_work.toml", "r.date", "r.id");
    let ran = project.run(&[]);
    assert_eq!((ran.code, ran.tried().len()), (0, 6), "{}", ran.output);
}

#[test]
fn a_marker_belongs_to_one_batch_too() {
    let project = rows(
        "outputs/{{ r.id }}.json",
        "marker = \"done/{{ r.date }}\"\n",
    );
    project
        .run(&[])
        .expect(1, &[])
        .says("would both write `done/mon`");
}

#[test]
fn so_does_the_file_of_an_iteration() {
    let refine = "[refine]\nuntil = 'true'\nmax_iterations = 2\n";
    let project = rows("outputs/{{ r.date }}_{{ iteration }}.json", refine);
    project
        .run(&[])
        .expect(1, &[])
        .says("would both write `outputs/mon_*.json`");
}

#[test]
fn a_change_that_makes_outputs_of_batches_one_is_noticed() {
    let project = rows("outputs/{{ r.date }}.json", "");
    let table = "id,date\n1,mon\n2,tue\n";
    project.write("workspace/inputs/rows.csv", table);
    project.run(&[]).expect(0, &["work/1", "work/2"]);
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/rows.csv", table.replace("tue", "mon"));
    project
        .run(&[])
        .expect(1, &[])
        .says("the batches `1` and `2` of stage `work` would both write `outputs/mon.json`");
    assert!(project.exists("workspace/outputs/tue.json"));
    project.write("workspace/inputs/rows.csv", table);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_new_file_that_names_the_output_of_another_is_noticed_among_very_many() {
    let project = texts("outputs/{{ f.number }}.txt", "echo $2 > $1");
    for number in 1..=60 {
        project.write(&format!("workspace/inputs/item_{number}.txt"), "");
    }
    project.write("workspace/inputs/note_60.txt", "");
    let says =
        "the batches `item_60` and `note_60` of stage `work` would both write `outputs/60.txt`";
    project.run(&[]).expect(1, &[]).says(says);
    project.remove("workspace/inputs/note_60.txt");
    assert_eq!(project.run(&[]).code, 0);
    project.run(&[]).expect(0, &[]);
    project.write("workspace/inputs/note_60.txt", "");
    project.run(&[]).expect(1, &[]).says(says);
    assert_eq!(project.read("workspace/outputs/60.txt"), "item_60\n");
}

#[test]
fn a_file_of_an_output_with_a_star_belongs_to_one_batch() {
    // `*` covers `b_1` of the batch `a`, and `1` of the batch `a_b`.
    let project = texts("outputs/{{ f.stem }}_*.txt", "echo $2 > outputs/a_b_1.txt");
    project.write("workspace/inputs/a.txt", "");
    project.write("workspace/inputs/a_b.txt", "");
    let ran = project.run(&[]);
    ran.says("output `made`: `outputs/a_b_1.txt` belongs to the batch `a`");
    assert_eq!(ran.code, 3, "{}", ran.output);
    assert_eq!(project.read("workspace/outputs/a_b_1.txt"), "a\n");
    // The batch that is up to date keeps its file.
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.tried()),
        (3, vec!["work/a_b".to_owned()]),
        "{}",
        ran.output
    );
    assert_eq!(project.read("workspace/outputs/a_b_1.txt"), "a\n");
}

#[test]
fn crossed_keys_are_unique() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"crossed\"\n"),
        (
            "stages/1_work.toml",
            "[each.a]\nvalues = [\"x\", \"x,y\"]\n\n[each.b]\nvalues = [\"y,z\", \"z\"]\n\n[step]\njq = '[$a, $b]'\n\n[outputs]\nmade = { path = \"outputs/{{ a }}/{{ b }}.json\", schema = false }\n",
        ),
    ]);
    project.run(&[]).expect(1, &[]).says(
        "stage `work` has two batches with the key `x,y,z`: commas in the keys of [each.a] and [each.b] make it ambiguous",
    );
}

#[test]
fn no_value_leads_an_output_to_the_manifests() {
    let project = rows("{{ r.id }}/x.json", "");
    project.write("workspace/inputs/rows.csv", "id\nmanifests\n");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says(
        "`manifests/x.json` is the folder of the manifests, which stages neither read nor write",
    );
}

#[test]
fn no_input_is_an_output_of_the_stage_or_a_later_one() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"cycle\"\n"),
        (
            "stages/1_work.toml",
            "[each.r]\nfrom = \"inputs/rows.csv\"\nselect = '.[]'\nkey = '.id'\n\n[inputs]\nd = { path = \"{{ r.file }}\", format = \"text\" }\n\n[step]\njq = '$d'\n\n[outputs]\nmade = { path = \"outputs/{{ r.id }}.json\", schema = false }\n",
        ),
        (
            "stages/2_end.toml",
            "[step]\njq = '2'\n\n[outputs]\nall = { path = \"results/all.json\", schema = false }\n",
        ),
    ]);
    for (file, stage) in [("outputs/1.json", "work"), ("results/all.json", "end")] {
        project.write("workspace/inputs/rows.csv", format!("id,file\n2,{file}\n"));
        let ran = project.run(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(&format!(
            "input `d`: `{file}` is an output of stage `{stage}`, and a stage reads only what earlier stages write"
        ));
    }
}

#[test]
fn no_input_is_the_progress_file_of_a_stage() {
    let stage = "[each.f]\npath = \"*.json\"\n\n[step]\njq = '$f.path'\n\n[outputs]\nmade = { path = \"outputs/{{ f.stem }}.json\", schema = false }\n";
    let project = Project::new(&[
        ("milepost.toml", "name = \"progress\"\n"),
        ("stages/1_work.toml", stage),
        ("workspace/a.json", "1"),
    ]);
    project.run(&[]).expect(0, &["work/a"]);
    assert!(project.exists("workspace/work_progress.json"));
    project.run(&[]).expect(0, &[]);
    // A former stage left its file.
    project.rename("stages/1_work.toml", "stages/1_later.toml");
    project.run(&[]).expect(0, &["later/a"]);
    assert!(project.exists("workspace/work_progress.json"));
    project.write("workspace/work_progress.json", "{\"mine\": 1}");
    project.run(&[]).expect(0, &["later/work_progress"]);
    project.edit(
        "stages/1_later.toml",
        "[step]",
        "[inputs]\nd = \"later_progress.json\"\n\n[step]",
    );
    let (code, plan) = project.milepost(&["plan"]);
    assert!(
        code == 4 && plan.contains("it is the progress file of the stage `later`"),
        "{plan}"
    );
    let named = "[each.r]\nvalues = [\"later_progress.json\"]\n\n[inputs]\nd = \"{{ r }}\"\n";
    project.edit(
        "stages/1_later.toml",
        "[inputs]\nd = \"later_progress.json\"\n",
        "",
    );
    project.edit(
        "stages/1_later.toml",
        "[each.f]\npath = \"*.json\"\n",
        named,
    );
    project.edit("stages/1_later.toml", "$f.path", "$r");
    project.edit("stages/1_later.toml", "f.stem", "r");
    project
        .run(&[])
        .says("input `d`: `later_progress.json` is the progress file of stage `later`");
    let reads = "command = \"echo 1 > {{ paths.made }}\"\nreads = [\"{{ r }}\"]";
    project.edit("stages/1_later.toml", "[inputs]\nd = \"{{ r }}\"\n", "");
    project.edit("stages/1_later.toml", "jq = '$r'", reads);
    project
        .run(&[])
        .says("`reads`: `later_progress.json` is the progress file of stage `later`");
}
