//! The command line as people meet it: whole outputs of the program.

mod complete;
mod eval;
mod follow;
mod init;
mod json;
mod plan;
mod run;
mod schemas;
mod tables;
mod usage;
mod verbose;
mod wrong;
