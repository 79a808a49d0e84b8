//! Stated values of an element: materials, quantities, properties, classifications, and the units of numbers.

pub(crate) mod classifications;
pub(crate) mod figures;
pub(crate) mod materials;
pub(crate) mod ordered;
pub(crate) mod properties;
pub(crate) mod quantities;
pub(crate) mod units;
