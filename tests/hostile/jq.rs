//! Filters over hostile inputs end within memory and depth.
