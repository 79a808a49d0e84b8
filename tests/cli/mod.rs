//! The command line as people meet it: whole outputs of the program.

mod plan;
mod run;
mod usage;
mod wrong;
