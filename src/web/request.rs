//! A request for a page, read.

use super::response::WebError;
use hyper::header::HeaderName;
use hyper::{HeaderMap, Method};
use serde::de::value::{Error as NoChoice, StrDeserializer};
use serde::de::{Deserialize, IntoDeserializer as _};

pub(super) struct PageRequest {
    pub(super) method: Method,
    /// The path after the token, such as `batch`; empty for the overview.
    pub(super) path: String,
    /// The parameters of the URL, in order.
    query: Vec<(String, String)>,
    /// The fields of a form, in order.
    form: Vec<(String, String)>,
    headers: HeaderMap,
}

impl PageRequest {
    /// Reads the parameters of the URL and the form in the body.
    pub(super) fn new(
        method: Method,
        path: &str,
        query: &str,
        headers: HeaderMap,
        body: &[u8],
    ) -> Self {
        Self {
            form: if method == Method::POST {
                // A browser sends every end of a line as CR and LF.
                let unix = |text: std::borrow::Cow<'_, str>| text.replace("\r\n", "\n");
                let fields = form_urlencoded::parse(body);
                fields
                    .map(|(name, value)| (unix(name), unix(value)))
                    .collect()
            } else {
                Vec::new()
            },
            method,
            path: path.to_owned(),
            query: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            headers,
        }
    }

    /// Returns a parameter of the URL, unless it is empty.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        first(&self.query, name)
    }

    /// Returns a parameter that a page needs.
    ///
    /// # Errors
    /// If it is missing.
    pub(super) fn required(&self, name: &str) -> Result<&str, WebError> {
        let missing = || WebError::Wrong(format!("the URL lacks the parameter `{name}`"));
        self.query(name).ok_or_else(missing)
    }

    /// Returns a parameter that is one of several words, unless it is empty.
    ///
    /// # Errors
    /// If it is another word.
    pub(super) fn choice<'a, T: Deserialize<'a>>(
        &'a self,
        name: &str,
    ) -> Result<Option<T>, WebError> {
        let Some(word) = self.query(name) else {
            return Ok(None);
        };
        let read: StrDeserializer<'a, NoChoice> = word.into_deserializer();
        let choice = T::deserialize(read);
        let wrong = |error| WebError::Wrong(format!("the parameter `{name}` of the URL: {error}"));
        choice.map(Some).map_err(wrong)
    }

    /// Returns a parameter that is a number, unless it is empty.
    ///
    /// # Errors
    /// If it is not a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, WebError> {
        let Some(text) = self.query(name) else {
            return Ok(None);
        };
        let wrong = |_| {
            WebError::Wrong(format!(
                "the parameter `{name}` of the URL is not a number: `{text}`"
            ))
        };
        text.parse().map(Some).map_err(wrong)
    }

    /// Returns the named parameters that are set, for links to the same page.
    pub(super) fn parameters<'a>(&'a self, names: &[&'a str]) -> Vec<(&'a str, &'a str)> {
        let set = |name: &&'a str| Some((*name, self.query(name)?));
        names.iter().filter_map(set).collect()
    }

    /// Returns all values of a parameter of the URL.
    pub(super) fn query_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        all(&self.query, name)
    }

    /// Returns a field of the form, unless it is empty.
    pub(super) fn form(&self, name: &str) -> Option<&str> {
        first(&self.form, name)
    }

    /// Returns all values of a field of the form.
    pub(super) fn form_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        all(&self.form, name)
    }

    /// Returns what a person entered in the form, by field, without what the page filled in.
    pub(super) fn entered(&self) -> Vec<(String, String)> {
        let entered = self.form.iter().filter_map(|(name, text)| {
            let field = match (name.as_str(), name.split_once(':')) {
                ("why", _) => "Reason",
                ("who", _) => "Your name",
                (_, Some(("choice" | "other", field))) => field,
                _ => return None,
            };
            let text = text.strip_prefix("value:").unwrap_or(text);
            (!text.is_empty()).then(|| (field.to_owned(), text.to_owned()))
        });
        entered.collect()
    }

    /// Returns a header, if it is text.
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(field, _)| field == name);
    found
        .map(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}

fn all<'a>(pairs: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    let named = pairs.iter().filter(move |(field, _)| field == name);
    named.map(|(_, value)| value.as_str())
}
