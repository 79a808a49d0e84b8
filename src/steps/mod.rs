//! The steps: what a stage does, one attempt of one batch each; no step knows the journal.

pub mod command;
