//! Manifests: what is written is read, one change rewrites one page, `sha256sum` reads them.

use super::sample::{any_stage, complete, made, stage};
use super::{Place, place};
use crate::support::required::{self, require};
use milepost_core::base::digest::Digest;
use milepost_core::model::state::{BatchState, StageState};
use milepost_core::model::totals::BatchTotals;
use milepost_store::store::disk::Disk;
use milepost_store::store::manifest::{self, ManifestError, kept};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn write(place: &Place, state: &StageState) -> Digest {
    manifest::write(&Disk::real(), &place.layout, "classify", state)
        .unwrap()
        .digest
}

fn read(place: &Place) -> StageState {
    manifest::read(&place.layout, "classify").unwrap()
}

/// Pages by name.
fn pages(place: &Place) -> BTreeMap<String, String> {
    let folder = place.layout.manifests().join("classify");
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn files_on(page: &str) -> usize {
    page.lines().filter(|line| !line.starts_with('#')).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(first in any_stage(), second in any_stage()) {
        let place = place();
        for state in [first, second] {
            let digest = write(&place, &state);
            prop_assert_eq!(read(&place), kept(&state));
            let found = manifest::digest(&place.layout, "classify").unwrap();
            prop_assert_eq!(found, Some(digest));
            let pages = pages(&place);
            let all = Digest::of(pages.values().cloned().collect::<String>());
            prop_assert_eq!(manifest::joined_digest(&place.layout, "classify").unwrap(), Some(all));
            let list = pages.iter().map(|(name, page)| format!("{}  {name}\n", Digest::of(page).hex()));
            let expected = if pages.len() == 1 { all } else { Digest::of(list.collect::<String>()) };
            prop_assert_eq!(expected, digest);
            let disk = Disk::real();
            let again = manifest::write(&disk, &place.layout, "classify", &read(&place)).unwrap();
            prop_assert_eq!((again.digest, disk.count()), (digest, 0));
            let found = manifest::pages(&place.layout, "classify", &read(&place)).unwrap();
            prop_assert_eq!(found.pages, again.pages);
        }
    }

}

/// Changes the outputs of some batches; each keeps its number of outputs.
fn change(state: &mut StageState, numbers: &[u32]) {
    for number in numbers {
        let key = format!("batch_{number}");
        if let Some(batch) = state.batches.get_mut(&key) {
            let out = made(&format!("intermediate/{key}.json"), "changed");
            *batch = complete(&key, vec![out]);
        }
    }
}

#[test]
fn pages_that_were_read_alone_are_written_as_with_all_others() {
    let (whole, by_page) = (place(), place());
    let mut state = stage((0..4500).map(|n| 3 * n));
    write(&whole, &state);
    let written = manifest::write(&Disk::real(), &by_page.layout, "classify", &state).unwrap();
    assert_eq!(written.pages.len(), 5);
    let mut some = StageState {
        number: state.number,
        pages: written.pages,
        ..StageState::default()
    };
    for changed in [&[6000, 6003, 13_497][..], &[0], &[3000]] {
        let names: Vec<String> = changed
            .iter()
            .map(|number| format!("intermediate/batch_{number}.json"))
            .collect();
        let names = names.iter().map(String::as_str).collect();
        let found = manifest::naming(&by_page.layout, "classify", &some.pages, &names).unwrap();
        let mut read = Vec::new();
        for place in found {
            some.pages[place].is_read = true;
            read.push(some.pages[place].clone());
        }
        let read = manifest::read_pages(&by_page.layout, "classify", &read).unwrap();
        some.batches.extend(read.batches);
        some.facts.extend(read.facts);
        change(&mut some, changed);
        change(&mut state, changed);
        let disk = Disk::real();
        let written = manifest::write(&disk, &by_page.layout, "classify", &some).unwrap();
        let all = manifest::write(&Disk::real(), &whole.layout, "classify", &state).unwrap();
        assert_eq!(written.digest, all.digest);
        assert_eq!(written.totals(), all.totals());
        assert_eq!(pages(&by_page), pages(&whole));
        some.pages = written.pages;
        assert_eq!(some.count(), 4500);
        assert_eq!(
            some.totals(),
            BatchTotals {
                inputs: None,
                ..all.totals()
            }
        );
    }
    assert!(some.batches.len() < 4500 - 900, "{}", some.batches.len());
    // A page that is not the noted one is not read.
    some.pages[3].is_read = false;
    some.pages[3].digest = Digest::of("another");
    let read = manifest::read_pages(&by_page.layout, "classify", &some.pages[3..4]);
    assert!(matches!(read, Err(ManifestError::Moving { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_page_is_long(changes in prop::collection::vec((0..3000_u32, 1..900_u32), 2..4)) {
        let place = place();
        let mut state = stage([]);
        for (from, count) in changes {
            state.batches.extend(stage((0..count).map(|n| from + 7 * n)).batches);
            write(&place, &state);
            prop_assert_eq!(read(&place), kept(&state));
            for (name, page) in pages(&place) {
                prop_assert!(files_on(&page) <= 1000, "{} is long", name);
            }
        }
    }
}

#[test]
fn one_change_of_ten_thousand_rewrites_one_page() {
    let place = place();
    let mut state = stage(1..=10_000);
    write(&place, &state);
    let before = pages(&place);
    assert_eq!(before.len(), 10);
    let changed = complete("batch_4711", vec![made("intermediate/x.json", "other")]);
    state.batches.insert("batch_4711".into(), changed);
    let disk = Disk::real();
    manifest::write(&disk, &place.layout, "classify", &state).unwrap();
    assert_eq!(disk.count(), 5, "one page is replaced atomically");
    let after = pages(&place);
    let differ = |name: &&String| before.get(*name) != after.get(*name);
    assert_eq!(
        after.keys().filter(differ).collect::<Vec<_>>(),
        ["page_0005.sha256"]
    );
    assert_eq!(read(&place), kept(&state));
}

#[test]
fn a_full_page_is_split_and_an_empty_one_is_dropped() {
    let place = place();
    let mut state = stage((1..=3000).map(|n| 2 * n));
    write(&place, &state);
    let before = pages(&place);
    state.batches.extend(stage([11]).batches);
    write(&place, &state);
    let after = pages(&place);
    assert_eq!(
        after
            .values()
            .map(|page| files_on(page))
            .collect::<Vec<_>>(),
        [501, 500, 1000, 1000]
    );
    assert_eq!(after["page_0003.sha256"], before["page_0002.sha256"]);
    assert_eq!(read(&place), kept(&state));

    for n in 2001..=4000 {
        state.batches.remove(&format!("batch_{n}"));
    }
    write(&place, &state);
    let names: Vec<String> = pages(&place).into_keys().collect();
    let expected = ["page_0001.sha256", "page_0002.sha256", "page_0004.sha256"];
    assert_eq!(names, expected);
    assert_eq!(read(&place), kept(&state));
}

#[test]
fn a_batch_of_many_files_stands_on_many_pages() {
    let place = place();
    let outputs = |last: &str| -> Vec<_> {
        let made_of = |n: u32| made(&format!("a/{n}.json"), if n == 2499 { last } else { "x" });
        (0..2500).map(made_of).collect()
    };
    let mut state = stage([]);
    state.batches = BTreeMap::from([(String::new(), complete("", outputs("y")))]);
    write(&place, &state);
    assert_eq!(pages(&place).len(), 3);
    assert_eq!(read(&place), kept(&state));
    state.batches = BTreeMap::from([(String::new(), complete("", outputs("z")))]);
    let disk = Disk::real();
    manifest::write(&disk, &place.layout, "classify", &state).unwrap();
    assert_eq!(disk.count(), 5);
    assert_eq!(read(&place), kept(&state));
}

#[test]
fn is_the_text_that_people_and_sha256sum_read() {
    let place = place();
    let mut state = stage([2]);
    state
        .batches
        .insert("batch_10".into(), BatchState::default());
    let digest = write(&place, &state);
    let text = pages(&place)["page_0001.sha256"].clone();
    let id = state.facts.keys().next().unwrap();
    let hex = Digest::of("batch_2").hex();
    let (lines, end) = text.rsplit_once("# end").unwrap();
    assert_eq!(end, format!(" {}\n", Digest::of(lines).hex()));
    assert_eq!(
        lines,
        format!(
            r#"# milepost manifest 1 stage classify number 3
# facts {id} {{"input rules":"1"}}
# batch {{"key":"batch_2","shared":"{id}","facts":{{"input item":"batch_2"}},"outputs":[{{"name":"out","size":7}}],"elements":50,"summary":{{"by_type":{{"IfcWall":2,"IfcBeam":1}}}},"attempts":1,"duration_ms":12,"run":"RUN"}}
{hex}  intermediate/batch_2.json
# waiting {{"key":"batch_10"}}
"#
        )
    );
    fs::create_dir_all(place.layout.root().join("intermediate")).unwrap();
    fs::write(
        place.layout.root().join("intermediate/batch_2.json"),
        "batch_2",
    )
    .unwrap();
    require!(required::program("sha256sum", &["--version"]));
    let said = Command::new("sh")
        .args(["-c", "sha256sum --strict -c manifests/classify/page_*.sha256 && cat manifests/classify/page_*.sha256 | sha256sum"])
        .current_dir(place.layout.root())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(said.stdout).unwrap(),
        format!("intermediate/batch_2.json: OK\n{}  -\n", digest.hex())
    );
}

#[test]
fn says_where_a_page_is_damaged() {
    let place = place();
    write(&place, &stage([1, 2]));
    let page = place.layout.manifests().join("classify/page_0001.sha256");
    let text = fs::read_to_string(&page).unwrap();
    let (lines, _) = text.rsplit_once("# end").unwrap();
    let hex = Digest::of("batch_1").hex();
    let other = hex.replacen(&hex[..1], if hex.starts_with('0') { "1" } else { "0" }, 1);
    for (damaged, line, problem) in [
        (lines.to_owned(), 7, "the page is cut off"),
        (text.replace("\"key\"", "\"kay\""), 3, "missing field `key`"),
        (text.replacen("intermediate/", "/", 1), 4, "is absolute"),
        (
            text.lines()
                .filter(|line| !line.ends_with("batch_1.json"))
                .collect::<Vec<_>>()
                .join("\n"),
            4,
            "a file of the batch before is missing",
        ),
        (
            text.replace("# batch", "# botch"),
            3,
            "is not a line of a manifest",
        ),
        (String::new(), 1, "the page is cut off"),
        (
            text.replacen(&hex, &other, 1),
            7,
            "the digest in the last line is not that of the lines before",
        ),
    ] {
        fs::write(&page, damaged).unwrap();
        let error = manifest::read(&place.layout, "classify").unwrap_err();
        let error = error.to_string();
        let found = format!("{}, line {line}: ", page.display());
        assert!(error.starts_with(&found), "{error}");
        assert!(error.contains(problem), "{error}");
    }
    // Earlier versions wrote no digest.
    fs::write(&page, format!("{lines}# end\n")).unwrap();
    let read = manifest::read(&place.layout, "classify").unwrap();
    assert_eq!(read.batches.len(), 2);
    let changed = manifest::changed_pages(&place.layout, "classify", &read);
    assert_eq!(changed.unwrap(), [] as [PathBuf; 0]);
    fs::write(&page, text.replace("manifest 1", "manifest 2")).unwrap();
    let error = manifest::read(&place.layout, "classify").unwrap_err();
    let message = error.to_string();
    assert!(
        message.ends_with("newer Milepost (format 2; this one reads up to 1): update milepost"),
        "{message}"
    );
}

#[test]
fn all_stages_are_read_and_one_is_removed() {
    let place = place();
    assert_eq!(manifest::read_all(&place.layout).unwrap(), BTreeMap::new());
    assert_eq!(read(&place), StageState::default());
    write(&place, &stage([1]));
    manifest::write(&Disk::real(), &place.layout, "parse", &stage([])).unwrap();
    let all = manifest::read_all(&place.layout).unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["classify", "parse"]);
    assert_eq!((all["parse"].number, all["parse"].batches.len()), (3, 0));
    manifest::remove(&Disk::real(), &place.layout, "classify").unwrap();
    manifest::remove(&Disk::real(), &place.layout, "classify").unwrap();
    assert_eq!(manifest::read_all(&place.layout).unwrap().len(), 1);
}
