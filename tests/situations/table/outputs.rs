//! The output of a batch altered with its mtime kept, with a new mtime, cut to nothing, deleted.

use super::super::house::House;
use super::super::letters::settled;
use super::{as_made_anew, both};

/// An output, and the batch that makes it.
pub struct Output {
    pub path: &'static str,
    pub batch: &'static str,
}

const LETTER: Output = Output {
    path: "intermediate/letters/person_2.txt",
    batch: "greet/person_2",
};

/// Runs stop before they do anything, name the file and the ways on, and leave everything as it is; `run --force` makes the
/// file again, only it, and keeps what was there.
pub fn is_noticed_and_refused(output: &Output, alter: fn(&House, &str)) {
    both(|house| {
        let path = format!("workspace/{}", output.path);
        let made = house.read(&path);
        alter(house, &path);
        let (altered, before) = (house.read(&path), house.contents());
        assert_ne!(altered, made);
        let (_, status) = house.milepost(&["status"]);
        assert!(status.contains("altered"), "{status}");
        for _ in 0..2 {
            let ran = house.run(&[]);
            ran.expect(5, &[])
                .says(output.path)
                .says("accept")
                .says("--force");
            let others = before
                .keys()
                .filter(|other| *other != output.path && other.contains('/'));
            for other in others {
                assert!(!ran.said.contains(other.as_str()), "{other}: {}", ran.said);
            }
        }
        assert_eq!(house.contents(), before);
        house
            .run(&["--force", output.batch])
            .expect(0, &[output.batch]);
        assert_eq!(house.read(&path), made);
        let kept = house.list(".milepost/quarantine");
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(kept[0].ends_with("/WHY.txt"), "{kept:?}");
        let kept = format!("workspace/.milepost/quarantine/{}", kept[1]);
        assert!(kept.ends_with(output.path), "{kept}");
        assert_eq!(house.read(&kept), altered);
        as_made_anew(house);
    });
}

/// A run makes it again, and nothing else.
pub fn is_made_again(output: &Output, path: &str) {
    both(|house| {
        house.remove(&format!("workspace/{path}"));
        house.run(&[]).expect(0, &[output.batch]);
        as_made_anew(house);
    });
}

/// The same size.
pub fn another_content(house: &House, path: &str) -> String {
    let text = house.read(path);
    let other = text.replace("BO", "BA");
    assert_eq!((text == other, text.len()), (false, other.len()));
    other
}

#[test]
fn altered_with_its_mtime_kept() {
    is_noticed_and_refused(&LETTER, |house, path| {
        house.write_with_mtime_kept(path, &another_content(house, path));
    });
}

#[test]
fn altered_with_a_new_mtime() {
    is_noticed_and_refused(&LETTER, |house, path| {
        house.write(path, another_content(house, path));
    });
}

#[test]
fn cut_to_0_bytes() {
    is_noticed_and_refused(&LETTER, |house, path| house.write(path, ""));
}

#[test]
fn cut_to_0_bytes_with_its_mtime_kept() {
    is_noticed_and_refused(&LETTER, |house, path| house.write_with_mtime_kept(path, ""));
}

#[test]
fn deleted() {
    is_made_again(&LETTER, LETTER.path);
}

#[test]
fn altered_where_the_stage_says_that_it_is_made_again() {
    let house = settled();
    let stage = house.read("stages/2_greet.toml");
    let policy = "\n[policy]\naltered = \"redo\"\n";
    house.write("stages/2_greet.toml", format!("{stage}{policy}"));
    house.write("workspace/intermediate/letters/person_2.txt", "Dear me");
    house.run(&[]).expect(0, &["greet/person_2"]);
    assert_eq!(house.quarantine(), ["WHY.txt", LETTER.path]);
    as_made_anew(&house);
}
