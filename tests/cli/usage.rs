//! Wrong usage.
