//! Text of a wished size from a number: the same number, the same text.

use crate::study::SplitMix64;

/// Common English words of one token in the vocabularies of large models.
const WORDS: &str = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they \
    which one you were all her she there would their we him been has when who will no more if out so up said what its about \
    than into them can only other time new some could these two may first then do any like my now over such our man me even \
    most made after also did many off before must well back through years much where your way down should because long each \
    just state those people too mr how little good world make very year still see own work men day get here old life both \
    between being under three never know same last another while us off might great go come since against right came take \
    used himself few house use place during high without again home around small however found part school number every \
    water left number course war until always away something fact though less public put think almost hand enough far took \
    head yet better set told nothing night end why find going look later point knew next city business case group give days \
    young let room side social given present order national possible second rather power white early large ";

/// So many words for a block of a trace, parted by spaces, each with one before it.
pub(super) fn block(seed: u64, id: u64, words: usize) -> String {
    let vocabulary: Vec<&str> = WORDS.split_whitespace().collect();
    let mut random = SplitMix64::new(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut text = String::with_capacity(words * 6);
    for _ in 0..words {
        let at = (random.unit() * vocabulary.len() as f64) as usize;
        text.push(' ');
        text.push_str(vocabulary[at.min(vocabulary.len() - 1)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_their_ids_and_as_long_as_asked() {
        assert_eq!(block(1, 7, 40), block(1, 7, 40));
        assert_ne!(block(1, 7, 40), block(1, 8, 40));
        assert_ne!(block(1, 7, 40), block(2, 7, 40));
        assert_eq!(block(1, 7, 40).split_whitespace().count(), 40);
        assert!(block(1, 7, 90).starts_with(&block(1, 7, 40)));
    }
}
