//! `milepost ui`: the pages over HTTP, as a browser requests them.

mod admission;
mod browser;
mod calls;
mod elements;
mod every_page;
mod outputs;
mod overview;
mod review;
mod runs;
pub mod server;
mod stages;
mod states;
mod streams;
mod timeline;
mod viewer;
