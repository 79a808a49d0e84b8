//! The step `pdf`: what a document cannot show is reported.

use crate::support::Project;

#[test]
fn a_run_warns_about_characters_that_no_font_has() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"reports\"\n"),
        (
            "stages/1_report.toml",
            "[inputs]\ntext = \"inputs/text.md\"\n\n[step]\npdf = \"text\"\n\n[outputs]\ndocument = \"outputs/report.pdf\"\n",
        ),
        ("workspace/inputs/text.md", "# Wand Стена τοίχος\n"),
    ]);
    let said = |text: &str| {
        project.write("workspace/inputs/text.md", text);
        project.run(&[]).expect(0, &["report"]).output.clone()
    };
    assert!(!said("# Wand Стена τοίχος\n").contains("warning"));
    assert!(said("# 外壁 外\n").contains(
        "report warning: 2 different characters could not be drawn, and are shown as \u{FFFD}: no font of the PDF has them"
    ));
    assert!(said("# 壁\n").contains(
        "report warning: 1 character could not be drawn, and is shown as \u{FFFD}: no font of the PDF has it"
    ));
}
