//! Work for agents outside: a scripted client drives the main pipeline through the functions that tools call.

pub mod client;
mod honest;
mod leases;
mod lies;
mod shapes;
