//! The gated units between the two matrices of a feed-forward block.

use crate::kernels::sigmoid;

/// gpt-oss's unit, in place of the gate: g = min(gate, 7), u = clamp(up, -7, 7),
/// h = g sigmoid(1.702 g) (u + 1).
pub fn clamped_swiglu(gate: &mut [f32], up: &[f32]) {
    const ALPHA: f32 = 1.702;
    const LIMIT: f32 = 7.0;
    for (g, &u) in gate.iter_mut().zip(up) {
        // `min` would replace a NaN; a comparison and `clamp` let it through to be found.
        let gate = if *g > LIMIT { LIMIT } else { *g };
        let up = u.clamp(-LIMIT, LIMIT);
        *g = (gate * sigmoid(ALPHA * gate)) * (up + 1.0);
    }
}

/// SwiGLU (Shazeer, 2020), in place of the gate: gate sigmoid(gate) up.
pub fn swiglu(gate: &mut [f32], up: &[f32]) {
    for (g, &u) in gate.iter_mut().zip(up) {
        *g = (*g * sigmoid(*g)) * u;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_and_up_are_clamped() {
        let mut gate = [100.0, -100.0, 1.0, f32::NAN];
        clamped_swiglu(&mut gate, &[100.0, 0.5, -100.0, 0.0]);
        assert!((gate[0] - 7.0 * 8.0).abs() < 1e-3);
        assert!(gate[1].abs() < 1e-30);
        let expected = 1.0 / (1.0 + (-1.702f32).exp()) * -6.0;
        assert!((gate[2] - expected).abs() < 1e-6);
        assert!(gate[3].is_nan());
    }

    #[test]
    fn swiglu_is_silu_times_up() {
        let mut gate = [2.0, -3.0];
        swiglu(&mut gate, &[0.5, 2.0]);
        assert!((gate[0] - 1.0 / (1.0 + (-2.0f32).exp())).abs() < 1e-6);
        assert!((gate[1] + 6.0 / (1.0 + 3.0f32.exp())).abs() < 1e-6);
    }
}
