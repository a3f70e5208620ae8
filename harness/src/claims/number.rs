//! Numbers as a text shows them, and whether a figure rounds to one.

/// A number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its digits as written, such as `79.1` or `-3`.
    pub digits: String,
    /// Where it begins, in bytes.
    pub at: usize,
}

/// What may follow the digits without a space.
const SUFFIXES: [&str; 12] = [
    "", "%", "x", "×", "s", "ms", "GB", "MB", "GiB", "MiB", "tok/s", "GB/s",
];

/// The numbers that a reader of this Markdown sees, in order: comments, code and the targets of
/// links are not seen, and digits in a name (`gpt-oss-20b`, `f16`, `2026-11-30`) are no numbers.
pub fn shown(markdown: &str) -> Vec<Shown> {
    let seen = unseen_blanked(markdown);
    let border = |c: char| c.is_whitespace() || "|()[]{},;:!?<>\"'*~=".contains(c);
    let mut numbers = Vec::new();
    let mut start = 0;
    for (at, c) in seen.char_indices().chain([(seen.len(), ' ')]) {
        if !border(c) {
            continue;
        }
        if let Some(digits) = number(&seen[start..at]) {
            let shift = seen[start..at].find(&digits).unwrap_or(0);
            numbers.push(Shown {
                digits,
                at: start + shift,
            });
        }
        start = at + c.len_utf8();
    }
    numbers
}

/// The digits of a word that is a number.
fn number(word: &str) -> Option<String> {
    let word = word.trim_matches('_').trim_end_matches('.');
    let word = word.strip_prefix(['+', '±', '≈', '~']).unwrap_or(word);
    let (sign, word) = match word.strip_prefix(['-', '−']) {
        Some(rest) => ("-", rest),
        None => ("", word),
    };
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    let (digits, suffix) = word.split_at(end);
    let digits = digits.trim_end_matches('.');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || digits.matches('.').count() > 1 {
        return None;
    }
    // With a decimal point it is one, whatever stands behind it; without, `20b` is a name.
    (digits.contains('.') || SUFFIXES.contains(&suffix)).then(|| format!("{sign}{digits}"))
}

/// The text with blanks in place of what is not seen; of the same length in bytes.
fn unseen_blanked(markdown: &str) -> String {
    let mut bytes = markdown.as_bytes().to_vec();
    let mut blank = |from: usize, to: usize| {
        for b in &mut bytes[from..to] {
            if *b != b'\n' {
                *b = b' ';
            }
        }
    };
    for (open, close) in [("<!--", "-->"), ("`", "`"), ("](", ")")] {
        let mut from = 0;
        while let Some(start) = markdown[from..].find(open).map(|i| from + i) {
            let inside = start + open.len();
            let Some(end) = markdown[inside..].find(close) else {
                break;
            };
            from = inside + end + close.len();
            blank(start, from);
        }
    }
    // Blanks took the place of whole characters, so what is left is text.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// In what a text gives a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Times this: bytes in GB are times 1e-9.
    Times(f64),
    /// A ratio as how many percent more than 1.
    PercentMore,
    /// A ratio as how many percent less than 1.
    PercentLess,
}

impl Scale {
    /// By the name behind `@` in a marked block.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "kB" => Self::Times(1e-3),
            "MB" => Self::Times(1e-6),
            "GB" => Self::Times(1e-9),
            "KiB" => Self::Times(1.0 / 1024.0),
            "MiB" => Self::Times(1.0 / (1 << 20) as f64),
            "GiB" => Self::Times(1.0 / (1 << 30) as f64),
            "ms" => Self::Times(1e3),
            "us" => Self::Times(1e6),
            "%" => Self::Times(100.0),
            "more%" => Self::PercentMore,
            "less%" => Self::PercentLess,
            _ => return None,
        })
    }

    /// Names that [`Scale::named`] knows.
    pub const NAMES: &'static str = "kB, MB, GB, KiB, MiB, GiB, ms, us, %, more%, less%";

    fn apply(self, value: f64) -> f64 {
        match self {
            Self::Times(factor) => value * factor,
            Self::PercentMore => (value - 1.0) * 100.0,
            Self::PercentLess => (1.0 - value) * 100.0,
        }
    }
}

impl Shown {
    /// `None` where a figure's value, rounded to the decimals shown, is what is shown; else what is
    /// wrong, in words. Fewer than two digits are too few, unless the value is that whole number.
    pub fn differs(&self, value: f64, scale: Scale) -> Option<String> {
        let value = scale.apply(value);
        let decimals = self.digits.split_once('.').map_or(0, |(_, d)| d.len());
        // Of two neighbours that lie equally near, the even one.
        let rounded = format!("{value:.decimals$}");
        if rounded != self.digits {
            return Some(format!("rounded alike it is {rounded}"));
        }
        let digits = self.digits.trim_start_matches(['-', '0', '.']);
        let significant = digits.chars().filter(char::is_ascii_digit).count();
        let whole = decimals == 0 && value.fract() == 0.0;
        (significant < 2 && !whole).then(|| "one digit is too few: give two at least".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(text: &str) -> Vec<String> {
        shown(text).into_iter().map(|n| n.digits).collect()
    }

    #[test]
    fn numbers_are_those_that_a_reader_sees() {
        let text = "| prompt, tok/s | 19.1 | **79.1** | 4.13 (3.82 to 4.48) |";
        assert_eq!(digits(text), ["19.1", "79.1", "4.13", "3.82", "4.48"]);
        let text =
            "gpt-oss-20b on `7 CPUs`, f16, [9](x/8.5) <!-- 3 --> 2026-11-30 b11434 Q4_0 and AVX2.";
        assert_eq!(digits(text), ["9"]);
        assert_eq!(
            digits("1.56x, 56%, 154tok/s; +3 −2.5 ±0.3, ends in 12."),
            ["1.56", "56", "154", "3", "-2.5", "0.3", "12"]
        );
        assert_eq!(digits("2.5foo and 3foo"), ["2.5"]);
        let text = "ä 1.5";
        assert_eq!(&text[shown(text)[0].at..], "1.5");
    }

    #[test]
    fn a_figure_is_rounded_to_what_is_shown() {
        let says = |digits: &str, value, scale| {
            let shown = Shown {
                digits: digits.to_owned(),
                at: 0,
            };
            shown.differs(value, scale)
        };
        let one = Scale::Times(1.0);
        assert_eq!(says("79.1", 79.090_782, one), None);
        assert_eq!(
            says("79.0", 79.090_782, one),
            Some("rounded alike it is 79.1".into())
        );
        assert_eq!(says("79", 79.090_782, one), None);
        assert_eq!(
            says("8", 8.4, one),
            Some("one digit is too few: give two at least".into())
        );
        assert_eq!(says("6", 6.0, one), None);
        assert_eq!(says("0.85", 0.845_297, one), None);
        assert_eq!(
            says("6.90", 6_904_483_840.0, Scale::named("GB").unwrap()),
            None
        );
        assert_eq!(
            says("56", 1.555, Scale::PercentMore),
            Some("rounded alike it is 55".into())
        );
        assert_eq!(says("76", 0.241_86, Scale::PercentLess), None);
        assert_eq!(says("-2.5", -2.46, one), None);
        assert!(Scale::named("parsec").is_none());
    }
}
