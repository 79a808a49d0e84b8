//! Work for agents outside: a scripted client drives the main pipeline through the functions that tools call.

pub mod client;
mod crash;
mod example;
mod honest;
mod leases;
mod lies;
mod shapes;
