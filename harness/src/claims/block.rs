//! Marked blocks of a Markdown file. The marks are comments, so nothing of them is seen.

use super::number::Scale;

/// How a block begins and ends.
const BEGIN: &str = "<!-- palindrome:claim";
const END: &str = "<!-- palindrome:end -->";

/// What the next number in a block must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A figure of the archive, in a scale.
    Figure {
        /// Its id in `figures.json`.
        id: String,
        /// In what the text gives it.
        scale: Scale,
    },
    /// These digits, which are no figure: the 95 of a 95% interval.
    Literal(String),
}

/// A marked block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The archive's folder name.
    pub archive: String,
    /// What its numbers are, in the order of reading.
    pub wanted: Vec<Wanted>,
    /// What is between the marks.
    pub text: String,
    /// Line of the text's first byte, from 1.
    pub line: usize,
}

/// A mark that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockError {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// All blocks of a text, in order. Marks in fenced code are examples, and no marks.
pub fn blocks(markdown: &str) -> Vec<Result<Block, BlockError>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = next_mark(markdown, at, BEGIN) {
        let (block, next) = block(markdown, begin);
        if let Some(stray) = next_mark(&markdown[..begin], at, END) {
            found.push(Err(error(markdown, stray, "an end without a beginning")));
        }
        found.push(block);
        at = next;
    }
    if let Some(stray) = next_mark(markdown, at, END) {
        found.push(Err(error(markdown, stray, "an end without a beginning")));
    }
    found
}

fn error(markdown: &str, at: usize, what: impl Into<String>) -> BlockError {
    BlockError {
        line: line_of(markdown, at),
        what: what.into(),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where a mark stands at or behind `from`, outside fenced code.
fn next_mark(markdown: &str, from: usize, mark: &str) -> Option<usize> {
    let mut at = 0;
    let mut fenced = false;
    for line in markdown.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let skip = from.saturating_sub(at).min(line.len());
        if !fenced && let Some(inside) = line.get(skip..).and_then(|rest| rest.find(mark)) {
            return Some(at + skip + inside);
        }
        at += line.len();
    }
    None
}

/// The block that begins there, and where to look for the next one.
fn block(markdown: &str, begin: usize) -> (Result<Block, BlockError>, usize) {
    let fail = |what: &str, next: usize| (Err(error(markdown, begin, what)), next);
    let head = begin + BEGIN.len();
    let Some(close) = markdown[head..].find("-->").map(|i| head + i) else {
        return fail("the mark has no `-->`", markdown.len());
    };
    let text_at = close + "-->".len();
    let Some(end) = next_mark(markdown, text_at, END) else {
        return fail(&format!("the block has no end: {END}"), markdown.len());
    };
    if next_mark(&markdown[..end], text_at, BEGIN).is_some() {
        return fail("the next block begins before this one ends", text_at);
    }
    let next = end + END.len();
    let block = declared(&markdown[head..close]).map(|(archive, wanted)| Block {
        archive,
        wanted,
        text: markdown[text_at..end].to_owned(),
        line: line_of(markdown, text_at),
    });
    (block.map_err(|what| error(markdown, begin, what)), next)
}

/// `archive=ID FIGURE... =LITERAL`.
fn declared(head: &str) -> Result<(String, Vec<Wanted>), String> {
    let mut words = head.split_whitespace();
    let archive = words.next().and_then(|w| w.strip_prefix("archive="));
    let Some(archive) = archive.filter(|name| is_folder_name(name)) else {
        return Err(
            "the first word must be `archive=` and the name of an archive's folder".to_owned(),
        );
    };
    let mut wanted = Vec::new();
    for word in words {
        if let Some(literal) = word.strip_prefix('=') {
            wanted.push(Wanted::Literal(literal.to_owned()));
            continue;
        }
        let (ids, scale) = match word.split_once('@') {
            None => (word, Scale::Times(1.0)),
            Some((ids, name)) => match Scale::named(name) {
                Some(scale) => (ids, scale),
                None => return Err(format!("`@{name}` is not one of {}", Scale::NAMES)),
            },
        };
        wanted.extend(
            expanded(ids)
                .into_iter()
                .map(|id| Wanted::Figure { id, scale }),
        );
    }
    Ok((archive.to_owned(), wanted))
}

fn is_folder_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('.')
}

/// `a/{b,c}/d` is `a/b/d` and `a/c/d`, as in a shell.
fn expanded(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else {
        return vec![word.to_owned()];
    };
    let Some((choices, after)) = rest.split_once('}') else {
        return vec![word.to_owned()];
    };
    let tails = expanded(after);
    choices
        .split(',')
        .flat_map(|choice| {
            let join = move |tail: &String| format!("{before}{choice}{tail}");
            tails.iter().map(join).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str) -> Wanted {
        Wanted::Figure {
            id: id.to_owned(),
            scale: Scale::Times(1.0),
        }
    }

    #[test]
    fn a_block_names_archive_and_figures() {
        let text = "x\n<!-- palindrome:claim archive=2026-a\narm/{a,b}/rate p/{low,high}@GB =95 -->\n1 of 2\n<!-- palindrome:end -->\n";
        let found = blocks(text);
        let block = found[0].as_ref().unwrap();
        assert_eq!(
            (found.len(), block.archive.as_str(), block.line),
            (1, "2026-a", 3)
        );
        assert_eq!(
            block.wanted[..2],
            [figure("arm/a/rate"), figure("arm/b/rate")]
        );
        assert_eq!(block.wanted[4], Wanted::Literal("95".to_owned()));
        assert_eq!(block.wanted.len(), 5);
        assert_eq!(block.text, "\n1 of 2\n");
    }

    #[test]
    fn broken_marks_are_named_with_their_line() {
        let wrong = |text: &str| -> Vec<String> {
            let found = blocks(text).into_iter();
            found
                .filter_map(Result::err)
                .map(|e| format!("{}: {}", e.line, e.what))
                .collect()
        };
        let none: [String; 0] = [];
        assert_eq!(wrong("```\n<!-- palindrome:claim\n```\n"), none);
        for (text, says) in [
            (
                "\n<!-- palindrome:claim archive=a",
                "2: the mark has no `-->`",
            ),
            (
                "<!-- palindrome:claim archive=a -->",
                "1: the block has no end",
            ),
            (
                "<!-- palindrome:claim arm/a --><!-- palindrome:end -->",
                "1: the first word must be",
            ),
            (
                "<!-- palindrome:claim archive=../a --><!-- palindrome:end -->",
                "1: the first word must be",
            ),
            (
                "<!-- palindrome:claim archive=a b@c --><!-- palindrome:end -->",
                "1: `@c` is not one of",
            ),
            (
                "a\nb <!-- palindrome:end -->",
                "2: an end without a beginning",
            ),
            (
                "<!-- palindrome:claim archive=a -->\n<!-- palindrome:claim archive=b --><!-- palindrome:end -->",
                "1: the next block begins before this one ends",
            ),
        ] {
            let found = wrong(text);
            assert!(found[0].starts_with(says), "{found:?} for {text:?}");
        }
    }
}
