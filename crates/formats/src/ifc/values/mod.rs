//! What an element says of itself: materials, quantities, properties, classifications, and the units of numbers.

pub mod classifications;
pub mod materials;
pub mod ordered;
pub mod properties;
pub mod quantities;
pub mod units;
