//! The operations of Milepost, one function for each command. They return data and print nothing.

pub mod browser_file;
pub mod change;
pub mod eval;
pub mod exit_code;
pub mod external;
pub mod inspect;
pub mod orchestrate;
pub mod plan;
pub mod project;
pub mod run;
pub mod schema;
pub mod token;
pub mod trace;
pub mod why;
