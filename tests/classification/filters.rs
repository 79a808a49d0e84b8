//! Filters: question and record.
