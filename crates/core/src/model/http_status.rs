//! Which HTTP statuses are retried: one table for model calls, provider batches and `http` steps.

/// The class of an HTTP status other than 2xx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// The key is refused, or may not do this: 401, 403.
    Key,
    /// The account has no credit: 402.
    Money,
    /// The request is too large: 413.
    TooLarge,
    /// The service is overloaded: 429, 503, 529.
    Busy,
    /// The same request may succeed later: 408, 409, 425 and any other 5xx.
    Passing,
    /// The same request fails again.
    Final,
}

impl StatusClass {
    /// Returns the class of a status.
    ///
    /// Sources: RFC 9110 (408, 5xx), RFC 6585 (429), RFC 8470 (425). A 409 refuses the request without doing anything, and the
    /// clients that Anthropic and `OpenAI` publish send it again, as they do with 408, 429 and 5xx.
    pub fn of(status: u16) -> Self {
        match status {
            401 | 403 => Self::Key,
            402 => Self::Money,
            413 => Self::TooLarge,
            429 | 503 | 529 => Self::Busy,
            408 | 409 | 425 | 500.. => Self::Passing,
            _ => Self::Final,
        }
    }

    /// Returns true if the same request is sent again.
    pub fn is_retried(self) -> bool {
        matches!(self, Self::Busy | Self::Passing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_one_class() {
        for (statuses, class) in [
            (&[401, 403][..], StatusClass::Key),
            (&[402], StatusClass::Money),
            (&[413], StatusClass::TooLarge),
            (&[429, 503, 529], StatusClass::Busy),
            (&[408, 409, 425, 500, 502, 504], StatusClass::Passing),
            (&[301, 304, 400, 404, 405, 410, 422], StatusClass::Final),
        ] {
            for &status in statuses {
                assert_eq!(StatusClass::of(status), class, "{status}");
            }
        }
    }

    #[test]
    fn what_passes_is_sent_again() {
        for status in [408, 409, 425, 429, 500, 502, 503, 529] {
            assert!(StatusClass::of(status).is_retried(), "{status}");
        }
        for status in [301, 400, 401, 402, 403, 404, 413, 422] {
            assert!(!StatusClass::of(status).is_retried(), "{status}");
        }
    }
}
