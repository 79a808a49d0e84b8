//! The pages on which a person reviews: the items of a review sheet, and the stages to approve.

pub(super) mod approvals;
pub(super) mod items;
pub(super) mod reviewer;
