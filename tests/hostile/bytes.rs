//! `verify` finds a changed byte in every file that the record covers.
