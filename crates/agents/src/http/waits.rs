//! How long a server asks to wait: after a refusal, and until a rate limit is refilled.

use super::HttpResponse;
use milepost_core::base::duration::parse_duration;
use std::time::Duration;

impl HttpResponse {
    /// Returns the wait that the server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date. A date is compared with
    /// the server's own `date`, because the local clock may be wrong (RFC 9110, section 10.2.3).
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = |text: &str| {
            let seconds: f64 = text.trim().parse().ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        };
        if let Some(wait) = self.header("retry-after-ms").and_then(seconds) {
            return Some(wait / 1_000);
        }
        let told = self.header("retry-after")?;
        seconds(told).or_else(|| {
            let wait = http_date(told)?.as_second() - http_date(self.header("date")?)?.as_second();
            u64::try_from(wait).ok().map(Duration::from_secs)
        })
    }

    /// Returns how long a used-up rate limit takes to refill, by the headers of the provider. Those of Anthropic contain the time, which
    /// is compared with the server's own `date`; those of OpenAI contain the duration.
    pub(crate) fn cooldown(&self) -> Option<Duration> {
        let used_up = |name: &str| self.header(name).is_some_and(|left| left.trim() == "0");
        let moment = |name: String| self.header(&name)?.parse::<jiff::Timestamp>().ok();
        let date = || http_date(self.header("date")?);
        let anthropic = ["requests", "tokens", "input-tokens", "output-tokens"];
        let anthropic = anthropic.iter().filter_map(|of| {
            let name = format!("anthropic-ratelimit-{of}");
            let told =
                used_up(&format!("{name}-remaining")).then(|| moment(format!("{name}-reset")));
            let wait = told??.duration_since(date()?);
            Duration::try_from(wait).ok()
        });
        let openai = ["requests", "tokens"].iter().filter_map(|of| {
            let told = used_up(&format!("x-ratelimit-remaining-{of}"));
            let wait = told.then(|| self.header(&format!("x-ratelimit-reset-{of}")))?;
            parse_duration(wait?).ok()
        });
        anthropic.chain(openai).max()
    }
}

/// A date in one of the forms of HTTP (RFC 9110, section 5.6.7), or with another zone.
fn http_date(text: &str) -> Option<jiff::Timestamp> {
    let zoned = || Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp());
    let http = || httpdate::parse_http_date(text).ok()?.try_into().ok();
    zoned().or_else(http)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these headers.
    fn answer(headers: &[(&str, &str)]) -> HttpResponse {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        HttpResponse {
            headers: headers.collect(),
            ..HttpResponse::default()
        }
    }

    #[test]
    fn a_limit_that_is_used_up_is_waited_for() {
        let rest = |headers: &[(&str, &str)]| answer(headers).cooldown();
        let date = ("date", "Sun, 22 Nov 2026 09:00:00 GMT");
        let reset = |left| {
            [
                date,
                ("anthropic-ratelimit-requests-remaining", "7"),
                ("anthropic-ratelimit-requests-reset", "2026-11-22T09:10:00Z"),
                ("anthropic-ratelimit-input-tokens-remaining", left),
                (
                    "anthropic-ratelimit-input-tokens-reset",
                    "2026-11-22T09:00:20Z",
                ),
            ]
        };
        assert_eq!(rest(&reset("0")), Some(Duration::from_secs(20)));
        assert_eq!(rest(&reset("1000")), None);
        assert_eq!(rest(&reset("0")[1..]), None);
        for (told, expected) in [
            ("6m0s", Some(Duration::from_mins(6))),
            ("1.5s", Some(Duration::from_millis(1_500))),
            ("20ms", Some(Duration::from_millis(20))),
            ("soon", None),
            ("3", None),
            // Each is a time, their sum is none.
            ("18446744073709549568s18446744073709549568s", None),
            ("1e30h", None),
            ("-1s", None),
            ("NaNs", None),
        ] {
            let left = ("x-ratelimit-remaining-tokens", "0");
            let wait = rest(&[left, ("x-ratelimit-reset-tokens", told)]);
            assert_eq!(wait, expected, "{told}");
        }
    }

    #[test]
    fn a_servers_wait_is_read_in_all_its_forms() {
        let wait = |headers: &[(&str, &str)]| answer(headers).retry_after();
        let date = ("date", "Sun, 22 Nov 2026 09:00:00 GMT");
        assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(
            wait(&[("retry-after", "0.5")]),
            Some(Duration::from_millis(500))
        );
        assert_eq!(
            wait(&[("retry-after", "9"), ("retry-after-ms", "250")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(
            wait(&[date, ("retry-after", "Sun, 22 Nov 2026 09:00:30 GMT")]),
            Some(Duration::from_secs(30))
        );
        for form in ["Sunday, 22-Nov-26 09:00:30 GMT", "Sun Nov 22 09:00:30 2026"] {
            let told = wait(&[date, ("retry-after", form)]);
            assert_eq!(told, Some(Duration::from_secs(30)), "{form}");
        }
        assert_eq!(
            wait(&[("retry-after", "Sun, 22 Nov 2026 09:00:30 GMT")]),
            None
        );
        assert_eq!(wait(&[("retry-after", "-3")]), None);
        assert_eq!(wait(&[]), None);
    }
}
