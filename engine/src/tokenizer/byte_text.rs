//! The printable alphabet in which GPT-2 and GGUF write bytes.
//!
//! Printable Latin-1 bytes stand for themselves; the other 68 (controls, space, DEL, NBSP, soft
//! hyphen) are written as U+0100 and up, in order (openai/gpt-2, `encoder.py`).

/// Whether `byte` is written as the character of the same number.
const fn is_direct(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

const fn chars() -> [char; 256] {
    let mut table = ['\0'; 256];
    let mut byte = 0;
    let mut shifted = 0u8;
    while byte < 256 {
        if is_direct(byte as u8) {
            table[byte] = byte as u8 as char;
        } else {
            // U+0100..U+0143: the second half of a two-byte character, never a surrogate.
            table[byte] = match char::from_u32(0x100 + shifted as u32) {
                Some(c) => c,
                None => panic!("not a character"),
            };
            shifted += 1;
        }
        byte += 1;
    }
    table
}

const fn shifted_bytes() -> [u8; 68] {
    let mut table = [0; 68];
    let mut byte = 0;
    let mut shifted = 0;
    while byte < 256 {
        if !is_direct(byte as u8) {
            table[shifted] = byte as u8;
            shifted += 1;
        }
        byte += 1;
    }
    table
}

static CHARS: [char; 256] = chars();
static SHIFTED: [u8; 68] = shifted_bytes();

/// The character that stands for `byte`.
pub fn byte_to_char(byte: u8) -> char {
    CHARS[byte as usize]
}

/// The byte that `c` stands for; `None` for a character outside the alphabet.
pub fn char_to_byte(c: char) -> Option<u8> {
    match u32::from(c) {
        n @ 0..=0xFF => is_direct(n as u8).then_some(n as u8),
        n => SHIFTED.get((n - 0x100) as usize).copied(),
    }
}

/// Bytes as text of the alphabet.
pub fn to_text(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| byte_to_char(b)).collect()
}

/// Text of the alphabet as bytes; `None` when a character is outside it.
pub fn to_bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(char_to_byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        let all: Vec<u8> = (0..=255).collect();
        let text = to_text(&all);
        assert_eq!(text.chars().count(), 256);
        assert_eq!(to_bytes(&text), Some(all));
        assert_eq!(to_text(b" \n"), "ĠĊ");
        assert_eq!(byte_to_char(0xAD), '\u{143}');
    }

    #[test]
    fn characters_outside_the_alphabet_are_refused() {
        for c in [' ', '\n', '\u{AD}', '\u{144}', '中'] {
            assert_eq!(char_to_byte(c), None, "{c:?}");
        }
    }
}
