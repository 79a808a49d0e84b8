//! Hostile documents and models end in a named outcome, and hinder no other batch.
