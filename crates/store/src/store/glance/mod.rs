//! A glance: whether anything is otherwise than when a run had nothing to do. Then the next has nothing to do either.
//!
//! A run notes what it asked of the disk, and every answer ([`Asked`]). When it found nothing to do, the notes are kept in
//! `.milepost/glance` under the digest of everything else that it went by. [`again`] asks the same again: the stamp of each file
//! (one `stat`), the names in each folder. Where only files answer otherwise, it names them, and a run looks at what depends on
//! them; after any other answer it looks at everything as if there were no glance.
//! A run that did something notes at its end how it leaves what it wrote.
//! The file is a cache: without it nothing is lost but time.

mod asked;
mod check;
mod form;

pub use asked::{Asked, Differing};
pub use check::{Glanced, again};

#[cfg(test)]
mod tests;
