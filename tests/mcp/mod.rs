//! The server of the Model Context Protocol, by scripted clients that speak to the program line by line.

mod aggregate;
pub mod client;
mod confined;
mod ending;
mod outside;
mod protocol;
mod running;
mod waiting;
