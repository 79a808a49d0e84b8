//! Tests through the library and the binary, one module a subject.

mod store;
