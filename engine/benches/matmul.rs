//! Rates of every kernel level, side by side: `cargo bench -p palindrome-engine`.
//!
//! Prints GB/s of weights for one token and Gop/s (a multiply and an add are two) for 32, on one
//! thread, and each level's ratio to the scalar twin. Times are the least of several runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use palindrome_engine::formats::blocks::GgmlType;
use palindrome_engine::kernels::{Activations, Isa, Layout, Matrix, Precision, matmul};

const ROWS: usize = 2880;
const COLS: usize = 2880;

fn least(runs: usize, mut work: impl FnMut()) -> Duration {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let values: Vec<f32> = (0..COLS)
        .map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0)
        .collect();
    for ty in GgmlType::ALL {
        let mut row = Vec::new();
        ty.quantize_row(&values, &mut row);
        let bytes = row.repeat(ROWS);
        let w = Matrix {
            ty,
            rows: ROWS,
            cols: COLS,
            layout: Layout::Rows,
            bytes: &bytes,
        };
        for (n, precision) in [1, 32]
            .iter()
            .flat_map(|n| [(*n, Precision::Int8), (*n, Precision::Int16)])
        {
            let mut x = Activations::default();
            x.set(&values.repeat(n), n, COLS, precision);
            let mut out = vec![0f32; ROWS * n];
            let mut scalar = None;
            for isa in Isa::available() {
                let time = least(5, || {
                    matmul(isa, &w, 0..ROWS, &x, 0..n, precision, &mut out);
                    black_box(&out);
                });
                let seconds = time.as_secs_f64();
                let scalar = *scalar.get_or_insert(seconds);
                let rate = match n {
                    1 => format!("{:7.2} GB/s ", bytes.len() as f64 / seconds / 1e9),
                    _ => format!(
                        "{:7.1} Gop/s",
                        2.0 * (ROWS * COLS * n) as f64 / seconds / 1e9
                    ),
                };
                let ratio = scalar / seconds;
                println!(
                    "{:6} {:7} {n:3} tokens {rate} {ratio:6.1}x",
                    ty.name(),
                    isa.name()
                );
            }
        }
    }
}
