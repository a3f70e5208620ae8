//! Every format at every level, on one thread, out of the cache: one token (bytes of weights a
//! second) and 32 tokens (multiplications and additions a second), in rows as in a file and in
//! tiles as in a store.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use palindrome_engine::formats::blocks::GgmlType;
use palindrome_engine::formats::{packed_scales, planes, tiles};
use palindrome_engine::kernels::{Activations, Isa, Layout, Matrix, Precision, matmul};

/// Cut to whole blocks.
const MOST_COLS: usize = 2880;

/// One shape of work: a decoded token against a whole matrix, or a block of a prompt against a
/// part of one.
struct Shape {
    name: &'static str,
    rows: usize,
    tokens: usize,
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "gemv",
        rows: 2880,
        tokens: 1,
    },
    Shape {
        name: "32-tokens",
        rows: 720,
        tokens: 32,
    },
];

fn kernels(criterion: &mut Criterion) {
    let values: Vec<f32> = (0..MOST_COLS)
        .map(|i| ((i * 37 % 101) as f32 - 50.0) / 25.0)
        .collect();
    for ty in GgmlType::ALL {
        let values = &values[..MOST_COLS - MOST_COLS % ty.block_len()];
        let mut row = Vec::new();
        ty.quantize_row(values, &mut row);
        for shape in &SHAPES {
            let rows = row.repeat(shape.rows);
            measure(criterion, ty, shape, Layout::Rows, &rows, values);
            if tiles::is_tiled(ty, shape.rows) {
                let mut tiled = vec![0; rows.len()];
                let tile = tiles::TILE_ROWS * row.len();
                for (rows, tiled) in rows.chunks_exact(tile).zip(tiled.chunks_exact_mut(tile)) {
                    tiles::pack(ty, rows, tiled);
                }
                measure(criterion, ty, shape, Layout::Tiles, &tiled, values);
                if ty == GgmlType::Mxfp4 {
                    let columns = values.len() / ty.block_len();
                    let packed = packed_scales::pack_rows(&rows, columns);
                    let packed = packed.expect("one row, over and over, of scales close together");
                    measure(criterion, ty, shape, Layout::PackedScales, &packed, values);
                }
                if ty == GgmlType::Q8_0 {
                    let mut split = vec![0; tiled.len()];
                    for (tile, split) in tiled.chunks_exact(tile).zip(split.chunks_exact_mut(tile))
                    {
                        planes::split(tile, split);
                    }
                    for layout in [Layout::Planes, Layout::HighPlanes] {
                        measure(criterion, ty, shape, layout, &split, values);
                    }
                }
            }
        }
    }
}

/// One matrix at every level, with one and two int8 digits an activation.
fn measure(
    criterion: &mut Criterion,
    ty: GgmlType,
    shape: &Shape,
    layout: Layout,
    bytes: &[u8],
    values: &[f32],
) {
    let w = Matrix {
        ty,
        rows: shape.rows,
        cols: values.len(),
        layout,
        bytes,
    };
    let place = match layout {
        Layout::Rows => "rows",
        Layout::Tiles => "tiles",
        Layout::PackedScales => "packed scales",
        Layout::Planes => "planes",
        Layout::HighPlanes => "high planes",
    };
    let mut group = criterion.benchmark_group(format!("{}/{}/{place}", ty.name(), shape.name));
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(if shape.tokens == 1 {
        Throughput::Bytes(bytes.len() as u64)
    } else {
        Throughput::Elements(2 * (shape.rows * values.len() * shape.tokens) as u64)
    });
    // Float weights meet f32, whatever the precision.
    let digits: &[(&str, Precision)] = if ty.is_float() {
        &[("f32", Precision::Int8)]
    } else {
        &[("int8", Precision::Int8), ("int16", Precision::Int16)]
    };
    for &(name, precision) in digits {
        let mut x = Activations::default();
        x.set(
            &values.repeat(shape.tokens),
            shape.tokens,
            values.len(),
            precision,
        );
        let mut out = vec![0f32; shape.rows * shape.tokens];
        for isa in Isa::available() {
            group.bench_function(BenchmarkId::new(name, isa.name()), |bencher| {
                bencher.iter(|| {
                    let (rows, tokens) = (0..shape.rows, 0..shape.tokens);
                    matmul(isa, &w, rows, &x, tokens, precision, &mut out);
                    black_box(&out);
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400));
    targets = kernels
}
criterion_main!(benches);
