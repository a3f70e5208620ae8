//! How the prompts in progress share a pass.

/// Prompt tokens of a pass in which anyone decodes, at most: a long prompt may lengthen the gap
/// between another's tokens by this much work.
const MIXED: usize = 128;

/// Prompt tokens that a pass may hold: the model's block, less where `decoding` requests wait
/// for their next tokens.
pub(super) fn prompt_budget(block: usize, decoding: usize) -> usize {
    if decoding == 0 {
        block
    } else {
        block.min(MIXED)
    }
}

/// Deals `budget` tokens to prompts that have `left` tokens to go, in order of arrival. The oldest
/// takes up to half, so that it never waits on newcomers; the others share the rest evenly, so
/// that a short prompt is not held up by a long one; what a prompt cannot use goes to the oldest
/// that can. All of the budget is dealt where there is use for it.
pub(super) fn share(budget: usize, left: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; left.len()];
    let mut rest = budget;
    for (i, (share, &left_of_it)) in shares.iter_mut().zip(left).enumerate() {
        let most = if i == 0 {
            rest.div_ceil(2)
        } else {
            rest.div_ceil(left.len() - i)
        };
        *share = left_of_it.min(most);
        rest -= *share;
    }
    for (share, &left_of_it) in shares.iter_mut().zip(left) {
        let more = (left_of_it - *share).min(rest);
        *share += more;
        rest -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        assert_eq!(share(128, &[4000]), [128]);
        assert_eq!(share(128, &[4000, 40]), [88, 40]);
        assert_eq!(share(128, &[4000, 4000]), [64, 64]);
        assert_eq!(share(128, &[10, 4000, 4000]), [10, 59, 59]);
        assert_eq!(share(128, &[4000, 1, 1, 500]), [64, 1, 1, 62]);
        assert_eq!(share(1, &[3, 3]), [1, 0]);
        assert!(share(128, &[]).is_empty());
        assert_eq!((prompt_budget(512, 0), prompt_budget(512, 1)), (512, 128));
        assert_eq!((prompt_budget(16, 0), prompt_budget(16, 9)), (16, 16));
    }

    proptest! {
        #[test]
        fn nothing_is_wasted_and_the_oldest_goes_on(
            budget in 1usize..600,
            left in prop::collection::vec(1usize..5000, 1..20),
        ) {
            let shares = share(budget, &left);
            prop_assert!(shares.iter().zip(&left).all(|(share, left)| share <= left));
            let all: usize = left.iter().sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), budget.min(all));
            prop_assert!(shares[0] >= left[0].min(budget.div_ceil(2)));
            if budget >= 2 * left.len() {
                prop_assert!(shares.iter().all(|&share| share > 0));
            }
        }
    }
}
