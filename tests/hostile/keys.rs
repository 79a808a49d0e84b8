//! API keys are redacted in every representation.
