//! The o200k vocabulary with harmony's special tokens, as a GGUF file would hold it.

use std::collections::HashMap;

use super::byte_text;

/// Number of ordinary tokens of o200k; special tokens follow.
const ORDINARY: usize = 199_998;
/// Size of the vocabulary that gpt-oss files declare, reserved tokens included.
const TOTAL: usize = 201_088;

/// `tokenizer.ggml.{tokens, token_type, merges}` of a gpt-oss file.
#[derive(Clone, Debug)]
pub struct O200k {
    /// Token texts in the printable byte alphabet; the index is the id. 201088 entries.
    pub tokens: Vec<String>,
    /// 1 = normal, 3 = control; as long as `tokens`.
    pub token_types: Vec<i32>,
    /// `left right`, most urgent first.
    pub merges: Vec<String>,
}

/// The special token at `id`, named as gpt-oss files name it.
fn special_name(id: usize) -> String {
    let known = match id {
        199_998 => "startoftext",
        199_999 => "endoftext",
        200_002 => "return",
        200_003 => "constrain",
        200_005 => "channel",
        200_006 => "start",
        200_007 => "end",
        200_008 => "message",
        200_012 => "call",
        200_018 => "endofprompt",
        _ => return format!("<|reserved_{id}|>"),
    };
    format!("<|{known}|>")
}

/// Builds the vocabulary from the ranks that `tiktoken-rs` carries.
pub fn o200k_harmony() -> O200k {
    let bpe = tiktoken_rs::o200k_base_singleton();
    let ordinary: Vec<Vec<u8>> = (0..ORDINARY as u32)
        .map(|rank| {
            bpe.decode_bytes(&[rank])
                .expect("o200k has every rank below 199998")
        })
        .collect();
    let merges = merges_from_ranks(&ordinary)
        .into_iter()
        .map(|(left, right)| {
            format!(
                "{} {}",
                byte_text::to_text(&ordinary[left as usize]),
                byte_text::to_text(&ordinary[right as usize])
            )
        })
        .collect();
    let mut tokens: Vec<String> = ordinary.iter().map(|t| byte_text::to_text(t)).collect();
    tokens.extend((ORDINARY..TOTAL).map(special_name));
    let token_types = (0..TOTAL)
        .map(|id| if id < ORDINARY { 1 } else { 3 })
        .collect();
    O200k {
        tokens,
        token_types,
        merges,
    }
}

/// Recovers a merge list from ranked tokens: each token of two bytes and more is the merge of the
/// two parts that are left when it is encoded with the tokens ranked before it. Tokens that do
/// not come down to two parts (none in o200k) get no merge.
pub fn merges_from_ranks(tokens: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let ranks: HashMap<&[u8], u32> = tokens
        .iter()
        .enumerate()
        .map(|(rank, token)| (token.as_slice(), rank as u32))
        .collect();
    let mut merges = Vec::with_capacity(tokens.len());
    let mut bounds: Vec<usize> = Vec::new();
    for (rank, token) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.len() > 1)
    {
        bounds.clear();
        bounds.extend(0..=token.len());
        while bounds.len() > 3 {
            let best = (0..bounds.len() - 2)
                .filter_map(|i| {
                    let merged = *ranks.get(&token[bounds[i]..bounds[i + 2]])?;
                    ((merged as usize) < rank).then_some((merged, i))
                })
                .min();
            let Some((_, i)) = best else { break };
            bounds.remove(i + 1);
        }
        if let [start, middle, end] = bounds[..] {
            let part = |from, to| ranks.get(&token[from..to]).copied();
            merges.extend(part(start, middle).zip(part(middle, end)));
        }
    }
    merges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vocabulary_is_whole() {
        let vocabulary = o200k_harmony();
        assert_eq!(vocabulary.tokens.len(), TOTAL);
        assert_eq!(vocabulary.token_types.len(), TOTAL);
        // Each token but the 256 bytes comes from exactly one merge.
        assert_eq!(vocabulary.merges.len(), ORDINARY - 256);
        assert_eq!(vocabulary.tokens[200_006], "<|start|>");
        assert_eq!(vocabulary.tokens[201_087], "<|reserved_201087|>");
        assert_eq!(vocabulary.token_types[ORDINARY - 1..=ORDINARY], [1, 3]);
        let distinct: std::collections::HashSet<_> = vocabulary.tokens.iter().collect();
        assert_eq!(distinct.len(), TOTAL);
    }

    #[test]
    fn merges_follow_rank_order() {
        let tokens: Vec<Vec<u8>> = ["a", "b", "c", "bc", "ab", "abc"]
            .iter()
            .map(|t| t.as_bytes().to_vec())
            .collect();
        // `abc` is a + bc, because bc outranks ab.
        assert_eq!(merges_from_ranks(&tokens), [(1, 2), (0, 1), (0, 3)]);
    }
}
