//! `init` in an empty folder, run to the end.

use crate::support::Project;

#[test]
fn the_templates_run_to_the_end_and_then_do_nothing() {
    for (template, outputs, stages) in [
        ("minimal", &["outputs/all.txt"][..], 2),
        (
            "ifc",
            &[
                "outputs/report.xlsx",
                "outputs/report.pdf",
                "outputs/plans.svg",
            ],
            4,
        ),
    ] {
        let project = Project::new(&[]);
        let made = project.output(&format!("init {template} ."));
        assert_eq!(made.code, 0, "{}", made.err);
        assert!(
            made.out
                .ends_with("next:\n  milepost plan\n  milepost run\n"),
            "{}",
            made.out
        );
        let ran = project.output("run");
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let said: String = outputs
            .iter()
            .zip(["outputs  ", "         ", "         "])
            .map(|(output, label)| format!("{label}workspace/{output}\n"))
            .collect();
        assert!(ran.out.ends_with(&said), "{}", ran.out);
        for output in outputs {
            let size = project
                .at(&format!("workspace/{output}"))
                .metadata()
                .unwrap()
                .len();
            assert!(size > 0, "{output}");
        }
        let again = project.output("run");
        let idle = format!("up to date: {stages} stages, nothing changed\n{said}");
        assert_eq!((again.code, again.out, again.err), (0, idle, String::new()));
        assert_eq!(project.output("verify --deep").code, 0);
    }
}

#[test]
fn the_smallest_template_takes_files_of_any_name() {
    let project = Project::new(&[]);
    project.output("init minimal .");
    let long = format!("{}.txt", "n".repeat(250));
    for name in [
        "it's.txt",
        "a[1].txt",
        "b{2}.txt",
        "two words.txt",
        "$HOME.txt",
        long.as_str(),
    ] {
        project.write(&format!("workspace/inputs/{name}"), "more\n");
    }
    let ran = project.output("run");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let all = project.read("workspace/outputs/all.txt");
    assert_eq!(all.matches("MORE\n").count(), 6);
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.output("verify").code, 0);
}
