//! What servers report about usage cannot empty or fool a budget.
