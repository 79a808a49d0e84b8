//! The pages on which a person reviews: the items of a review sheet, the batches of external agents, and the stages to approve.

pub(super) mod answer;
pub(super) mod approvals;
mod form;
pub(super) mod items;
pub(super) mod reviewer;
