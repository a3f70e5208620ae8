//! A page as blocks, rendered to HTML and to Markdown from the same content.

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// What a reader must know first.
    Warning(String),
    /// The outcome in one sentence.
    Verdict(String),
    /// Section heading.
    Heading(&'static str),
    /// Running text.
    Text(String),
    /// Bullets.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// The chart, with its caption.
    Chart(String),
}

/// A table; the first `left` columns are text, the others numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) left: usize,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) question: String,
    pub(super) blocks: Vec<Block>,
}

impl Table {
    pub(super) fn new(head: &[&str], left: usize) -> Self {
        Self {
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
            left,
        }
    }
}
