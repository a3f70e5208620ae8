//! Root-mean-square normalisation (Zhang and Sennrich, 2019).

use super::reduce::sum_of_squares;
use crate::team::Team;

/// Values that a thread takes at a time, about.
const VALUES: usize = 1 << 15;

/// `out[t] = x[t] / sqrt(mean(x[t]^2) + eps) * weight` for each row t of `weight.len()` values.
pub fn rms_norm(team: &Team, x: &[f32], weight: &[f32], eps: f32, out: &mut Vec<f32>) {
    let width = weight.len();
    out.resize(x.len(), 0.0);
    let piece = VALUES.next_multiple_of(width);
    team.for_chunks(out, piece, |i, out| {
        let x = &x[i * piece..][..out.len()];
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let mean = sum_of_squares(x) / width as f32;
            let scale = 1.0 / (mean + eps).sqrt();
            for ((out, v), w) in out.iter_mut().zip(x).zip(weight) {
                *out = (v * scale) * w;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_unit_mean_square() {
        let x: Vec<f32> = (0..64).map(|i| i as f32 - 20.0).collect();
        let (team, mut out) = (Team::new(2), Vec::new());
        rms_norm(&team, &x, &[1.0; 32], 0.0, &mut out);
        for row in out.chunks(32) {
            assert!((sum_of_squares(row) / 32.0 - 1.0).abs() < 1e-6);
        }
        rms_norm(&team, &[3.0, 4.0], &[2.0, 1.0], 0.0, &mut out);
        let rms = 12.5f32.sqrt();
        assert!((out[0] - 6.0 / rms).abs() < 1e-6 && (out[1] - 4.0 / rms).abs() < 1e-6);
    }
}
