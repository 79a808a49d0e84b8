//! Situations that a project gets into, end to end through the binary: what runs, what is said, what lies on the disk.

mod altered;
mod bad;
mod by_hand;
mod corrections;
mod declared;
mod doubled;
mod freshness;
mod glance;
pub mod house;
mod http;
mod language;
mod letters;
mod limits;
mod manifest;
mod meeting;
mod mounted;
mod packed;
mod pdf_text;
mod picked;
mod policies;
mod promises;
mod refine;
mod running;
mod services;
mod shell;
mod table;
mod typed;
