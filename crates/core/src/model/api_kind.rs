//! The providers of model APIs, as declarations, keys and reports know them. The clients are in the package of agents.

/// A provider of a model API, or a protocol that several servers speak.
///
/// A new one is a variant here with its [`ApiSpec`], and a client with its line in `api/providers` of the package of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Chat Completions API, and every server that speaks it.
    OpenAi,
}

/// The key of a provider in declarations, and its defaults.
#[derive(Debug, Clone, Copy)]
pub struct ApiSpec {
    /// The key of the declaration; also the provider's name in reports and records, which are compared by it.
    pub(crate) name: &'static str,
    /// The environment variable that holds the key.
    pub(crate) key_env: &'static str,
    /// The provider's own address.
    pub base_url: &'static str,
    /// True if requests can go in batches (`mode = "batch"`).
    pub(crate) has_batches: bool,
    /// The description of the key in schemas and docs.
    pub(crate) doc: &'static str,
}

impl ApiKind {
    /// All providers, in the order in which they are documented.
    pub(crate) const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// Returns what declarations need to know of the provider.
    pub const fn spec(self) -> ApiSpec {
        match self {
            Self::Anthropic => ApiSpec {
                name: "anthropic",
                key_env: "ANTHROPIC_API_KEY",
                base_url: "https://api.anthropic.com",
                has_batches: true,
                doc: "A model of Anthropic's Messages API. Its key is in ANTHROPIC_API_KEY.",
            },
            Self::OpenAi => ApiSpec {
                name: "openai",
                key_env: "OPENAI_API_KEY",
                base_url: "https://api.openai.com/v1",
                has_batches: true,
                doc: "A model of OpenAI's Chat Completions API, or of a server that speaks it. Its key is in OPENAI_API_KEY.",
            },
        }
    }

    /// Returns the key of the declaration, which is also the provider's name in reports and records.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }
}
