//! The card of outputs on the overview and on the page of a stage: links that open and download each file, whatever its name.

use super::server::{Reply, Ui};
use crate::support::Project;

/// Names that are markup, queries, fragments or escapes in a URL.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=alert(1)>",
    "a&path=b#c?d=%2F..%2Fe",
    "quote\"'",
    "two  blanks",
    "\u{202e}gnp",
    "größe 100%",
];

/// A stage that copies each input, and a stage that joins them.
fn project(folder: &str, names: &[&str]) -> Project {
    let outputs = format!(
        "[each.page]\npath = \"inputs/*.txt\"\n[step]\ncommand = [\"cp\", \"{{{{ page.path }}}}\", \"{{{{ paths.copy }}}}\"]\n[outputs]\ncopy = \"{folder}/{{{{ page.stem }}}}.txt\"\n"
    );
    let project = Project::new(&[
        ("milepost.toml", "name = \"pages\"\n"),
        ("stages/1_copy.toml", outputs.as_str()),
        (
            "stages/2_join.toml",
            &format!(
                "[inputs]\npages = \"{folder}/*.txt\"\n[step]\njq = '.pages | length'\n[outputs]\ncount = {{ path = \"{folder}/all/count.json\", schema = false }}\n"
            ),
        ),
    ]);
    for name in names {
        project.write(
            &format!("workspace/inputs/{name}.txt"),
            format!("of {name}"),
        );
    }
    assert_eq!(project.output("run").code, 0);
    project
}

/// Returns the addresses of links to `page` in the card of outputs.
fn links<'a>(body: &'a str, page: &str) -> Vec<&'a str> {
    let card = body.split_once("<h2 id=\"outputs\">").unwrap().1;
    let card = card.split_once("</section>").unwrap().0;
    let start = format!("/{page}?path=");
    let addresses = card.split("href=\"").skip(1);
    let addresses = addresses.map(|rest| rest.split('"').next().unwrap());
    let addresses =
        addresses.filter_map(|address| address.find(&start).map(|at| &address[at + 1..]));
    addresses.collect()
}

#[test]
fn a_result_is_one_click_away_whatever_its_name() {
    let project = project("outputs", &HOSTILE);
    let ui = Ui::start(&project);
    let overview = ui.get("").body;
    assert!(!overview.contains("<img"), "{overview}");
    let (shown, raw) = (links(&overview, "file"), links(&overview, "raw"));
    assert_eq!((shown.len(), raw.len()), (7, 7), "{overview}");
    // The last stage is first.
    assert_eq!(shown[0], "file?path=outputs%2Fall%2Fcount.json");
    let mut contents: Vec<String> = Vec::new();
    for (shown, raw) in shown.iter().zip(&raw) {
        let page: Reply = ui.get(shown);
        assert_eq!(page.status, 200, "{shown}");
        assert!(page.body.contains("matches the record"), "{}", page.body);
        let file = ui.get(raw);
        assert_eq!(file.status, 200, "{raw}");
        let disposition = file.header("content-disposition");
        assert!(disposition.is_some_and(|it| it.starts_with("attachment")));
        contents.push(file.body);
    }
    let mut expected: Vec<String> = HOSTILE.map(|name| format!("of {name}")).to_vec();
    expected.push("6\n".to_owned());
    contents.sort();
    expected.sort();
    assert_eq!(contents, expected);
    let of_stage = ui.get("stage?stage=copy").body;
    assert_eq!(links(&of_stage, "file").len(), 6);
    assert!(ui.get("stage?stage=join").body.contains("count.json"));
}

#[test]
fn many_outputs_are_cut_with_their_number() {
    let names: Vec<String> = (1..=70).map(|number| format!("page_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let project = project("outputs", &names);
    let ui = Ui::start(&project);
    let overview = ui.get("").body;
    assert_eq!(links(&overview, "file").len(), 12);
    assert!(overview.contains("59 more of <a href="), "{overview}");
    let of_stage = ui.get("stage?stage=copy").body;
    let files = links(&of_stage, "file");
    // Numbers in names are compared by their values.
    assert_eq!(files[1], "file?path=outputs%2Fpage_2.txt");
    assert_eq!(files.len(), 60);
    assert!(
        of_stage.contains("<summary>48 more</summary>"),
        "{of_stage}"
    );
    assert!(of_stage.contains("10 more of this stage"), "{of_stage}");
}

#[test]
fn without_a_folder_of_outputs_the_last_stages_have_the_results() {
    let project = project("made", &["one", "two"]);
    let ui = Ui::start(&project);
    assert_eq!(
        links(&ui.get("").body, "file"),
        ["file?path=made%2Fall%2Fcount.json"]
    );
}

#[test]
fn before_the_first_run_there_is_no_card() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    assert!(!ui.get("").body.contains("Outputs</h2>"));
}
