//! No control character of an input, an answer or a client reaches a terminal.
