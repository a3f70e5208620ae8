//! What a core does at most with the mixes of instructions that the AVX2 kernels consist of: loops
//! of nothing else, out of registers, in vector instructions a second. The first is the clock.
#![allow(missing_docs, reason = "criterion's macros make public items")]

#[cfg(target_arch = "x86_64")]
mod mixes {
    use std::arch::asm;
    use std::time::Duration;

    use criterion::{Criterion, SamplingMode, Throughput};

    /// Name, instructions for each sum, and the loop.
    type Mix = (&'static str, u64, fn(u64));

    /// A loop of a mix, four times for each of eight sums.
    macro_rules! mix {
        ($name:ident, $($before:literal),* ; $($add:literal)?) => {
            fn $name(rounds: u64) {
                // SAFETY: called where AVX2 was found; registers only, all of which are named.
                unsafe {
                    asm!(
                        "2:",
                        mix!(@eight $($before),* ; $($add)?),
                        mix!(@eight $($before),* ; $($add)?),
                        mix!(@eight $($before),* ; $($add)?),
                        mix!(@eight $($before),* ; $($add)?),
                        "dec {rounds}",
                        "jnz 2b",
                        rounds = inout(reg) rounds => _,
                        out("rax") _, out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                        out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _,
                        out("ymm9") _, out("ymm10") _, out("ymm11") _, out("ymm12") _,
                        options(nomem, nostack),
                    );
                }
            }
        };
        (@eight $($before:literal),* ; $($add:literal)?) => {
            concat!(
                mix!(@one 0, $($before),* ; $($add)?), mix!(@one 1, $($before),* ; $($add)?),
                mix!(@one 2, $($before),* ; $($add)?), mix!(@one 3, $($before),* ; $($add)?),
                mix!(@one 4, $($before),* ; $($add)?), mix!(@one 5, $($before),* ; $($add)?),
                mix!(@one 6, $($before),* ; $($add)?), mix!(@one 7, $($before),* ; $($add)?),
            )
        };
        (@one $sum:literal, $($before:literal),* ; $($add:literal)?) => {
            concat!($($before, "\n",)* $($add, " ymm", $sum, ", ymm", $sum, ", ymm8\n")?)
        };
    }

    mix!(clock, "add rax, 1";);
    mix!(add, ; "vpaddw");
    mix!(multiply, "vpmaddubsw ymm8, ymm10, ymm11";);
    mix!(bytes, "vpmaddubsw ymm8, ymm10, ymm11"; "vpaddw");
    mix!(signed, "vpsignb ymm8, ymm10, ymm11", "vpmaddubsw ymm8, ymm9, ymm8", "vpmaddwd ymm8, ymm8, ymm12"; "vpaddd");
    mix!(words, "vpmaddwd ymm8, ymm10, ymm11"; "vpaddd");
    mix!(winograd, "vpaddw ymm8, ymm10, ymm11", "vpaddw ymm9, ymm11, ymm12", "vpmaddwd ymm8, ymm8, ymm9"; "vpaddd");

    pub fn mixes(criterion: &mut Criterion) {
        const ROUNDS: u64 = 20_000;
        if !is_x86_feature_detected!("avx2") {
            println!("no AVX2 here");
            return;
        }
        let mut group = criterion.benchmark_group("mixes");
        group.sampling_mode(SamplingMode::Flat);
        let mixes: [Mix; 7] = [
            ("clock", 1, clock),
            ("vpaddw", 1, add),
            ("vpmaddubsw", 1, multiply),
            ("vpmaddubsw, vpaddw", 2, bytes),
            ("vpsignb, vpmaddubsw, vpmaddwd, vpaddd", 4, signed),
            ("vpmaddwd, vpaddd", 2, words),
            ("vpaddw, vpaddw, vpmaddwd, vpaddd", 4, winograd),
        ];
        for (name, instructions, run) in mixes {
            group.throughput(Throughput::Elements(32 * instructions * ROUNDS));
            group.bench_function(name, |bencher| bencher.iter(|| run(ROUNDS)));
        }
        group.finish();
    }

    pub fn config() -> Criterion {
        Criterion::default()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(300))
    }
}

#[cfg(target_arch = "x86_64")]
criterion::criterion_group! {
    name = benches;
    config = mixes::config();
    targets = mixes::mixes
}
#[cfg(target_arch = "x86_64")]
criterion::criterion_main!(benches);

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("the mixes are those of x86-64");
}
