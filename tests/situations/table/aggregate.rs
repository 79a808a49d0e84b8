//! The aggregate altered or deleted: as the output of a batch.

use super::outputs::{Output, another_content, is_made_again, is_noticed_and_refused};

const PAGE: Output = Output {
    path: "outputs/page.md",
    batch: "join",
};

#[test]
fn altered_with_its_mtime_kept() {
    is_noticed_and_refused(&PAGE, |project, path| {
        project.write_with_mtime_kept(path, another_content(project, path));
    });
}

#[test]
fn altered_with_a_new_mtime() {
    is_noticed_and_refused(&PAGE, |project, path| {
        project.write(path, another_content(project, path));
    });
}

#[test]
fn cut_to_0_bytes() {
    is_noticed_and_refused(&PAGE, |project, path| {
        project.write_with_mtime_kept(path, "");
    });
}

#[test]
fn deleted() {
    is_made_again(&PAGE, PAGE.path);
    is_made_again(&PAGE, "outputs/book.json");
}
