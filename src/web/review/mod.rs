//! The pages on which a person reviews: the items of a review sheet, and the batches of external agents.

pub(super) mod answer;
mod form;
pub(super) mod items;
mod reviewer;
