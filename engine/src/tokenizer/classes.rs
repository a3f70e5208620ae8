//! Unicode classes that pre-tokenizers ask about.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, HirKind};

/// Classes of one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharClass(u8);

impl CharClass {
    const LETTER: u8 = 1;
    const NUMBER: u8 = 2;
    const SPACE: u8 = 4;
    const HEAD: u8 = 8;
    const TAIL: u8 = 16;

    /// Looks `c` up.
    pub fn of(c: char) -> Self {
        static TABLE: OnceLock<Box<[u8]>> = OnceLock::new();
        Self(TABLE.get_or_init(build)[c as usize])
    }
    /// `\p{L}`
    pub fn letter(self) -> bool {
        self.0 & Self::LETTER != 0
    }
    /// `\p{N}`
    pub fn number(self) -> bool {
        self.0 & Self::NUMBER != 0
    }
    /// `\s`
    pub fn space(self) -> bool {
        self.0 & Self::SPACE != 0
    }
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: what may stand in the head of an o200k word.
    pub fn head(self) -> bool {
        self.0 & Self::HEAD != 0
    }
    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: what may stand in its tail.
    pub fn tail(self) -> bool {
        self.0 & Self::TAIL != 0
    }
    /// `[^\s\p{L}\p{N}]`
    pub fn symbol(self) -> bool {
        self.0 & (Self::LETTER | Self::NUMBER | Self::SPACE) == 0
    }
}

/// One byte of flags for each code point.
fn build() -> Box<[u8]> {
    let mut table = vec![0u8; 0x11_0000].into_boxed_slice();
    let classes = [
        (r"\p{L}", CharClass::LETTER),
        (r"\p{N}", CharClass::NUMBER),
        (r"\s", CharClass::SPACE),
        (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", CharClass::HEAD),
        (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", CharClass::TAIL),
    ];
    for (pattern, flag) in classes {
        let hir = regex_syntax::parse(pattern).expect("the patterns above are valid");
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            unreachable!("a class of many characters stays a class")
        };
        for range in class.iter() {
            for flags in &mut table[range.start() as usize..=range.end() as usize] {
                *flags |= flag;
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_fall_into_their_classes() {
        let class = CharClass::of;
        assert!(class('a').letter() && class('a').tail() && !class('a').head());
        assert!(class('Z').letter() && class('Z').head() && !class('Z').tail());
        assert!(class('中').head() && class('中').tail());
        // A combining acute accent belongs to words of o200k and is no letter.
        assert!(class('\u{301}').head() && class('\u{301}').tail() && class('\u{301}').symbol());
        assert!(class('½').number() && class('٣').number());
        assert!(class('\u{3000}').space() && class('\u{85}').space() && !class('\u{200b}').space());
        assert!(class('🙂').symbol() && class('\u{10ffff}').symbol());
    }
}
