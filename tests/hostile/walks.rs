//! Walks over hostile PDF and IFC structures are bounded.
