//! What cannot be done.
