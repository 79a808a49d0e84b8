//! Situations that a project gets into, end to end through the binary: what runs, what is said, what lies on the disk.

mod altered;
mod declared;
mod freshness;
mod house;
mod letters;
mod packed;
