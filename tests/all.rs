//! The one test binary; every part of the tests is a module of it.

mod model;
