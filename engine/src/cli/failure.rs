//! Errors as a person at a terminal sees them.

use std::fmt;

/// A command that failed: one line that says what and where, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure in one line.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string().replace('\n', " "),
            hint: None,
        }
    }
    /// Says what would help.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}
