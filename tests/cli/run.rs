//! What a run says, from the first to one that has nothing to do.

use crate::support::{Project, expect};

#[test]
fn a_first_run_says_what_it_does_and_a_second_why_it_does_nothing() {
    let project = Project::letters();
    expect(
        project.run(""),
        0,
        "\
copy  complete  3 batches ran  …
join  complete  ran            …

complete in …
outputs  …/workspace/outputs/page.txt
",
        "\
copy starts: 3 batches  Copy each person
copy complete in …
join starts  Greet them all
join complete in …
",
    );
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hello Ann\nHello Bo\nHello Cy"
    );
    expect(
        project.run("run"),
        0,
        "\
nothing to do: 2 stages are complete and nothing they depend on has changed
outputs  …/workspace/outputs/page.txt
",
        "",
    );
    expect(
        project.run("run copy"),
        0,
        "nothing to do: copy is complete and nothing it depends on has changed\n",
        "",
    );
}
