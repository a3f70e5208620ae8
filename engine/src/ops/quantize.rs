//! Quantising a batch of activations, split over the team.

use crate::kernels::{Activations, Precision};
use crate::team::Team;

/// Makes the rows of `x`, of width `k`, the activations `a`, in groups of rows that are used
/// together (`groups[g]..groups[g + 1]`); keeps the f32 values if `floats`.
///
/// # Panics
/// When `x` does not hold the groups' rows.
pub fn quantize(
    team: &Team,
    a: &mut Activations,
    x: &[f32],
    groups: &[usize],
    k: usize,
    precision: Precision,
    floats: bool,
) {
    a.set_by(
        x,
        groups,
        k,
        precision,
        floats,
        |blocks, width, bounds, job| {
            team.for_blocks(blocks, width, bounds, width, |_, mut part| {
                let rows = part.rows();
                if let Some(blocks) = part.contiguous() {
                    job(rows, blocks);
                }
            });
        },
    );
}
