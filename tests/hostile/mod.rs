//! Attacks: hostile files, answers, servers, clients and users of the machine.

mod answers;
mod browsers;
mod bytes;
mod clients;
mod copies;
mod depth;
pub mod files;
mod full_disk;
mod grading;
mod jq;
mod keys;
mod leases;
mod money;
mod names;
mod other_users;
mod readers;
mod special_files;
mod terminal;
mod urls;
mod values;
mod walks;
mod workers;
