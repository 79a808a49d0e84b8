//! Values that JSON readers differ about: long integers, duplicate keys, Unicode forms.
