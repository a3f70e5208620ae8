//! Which limits to measure, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::compute::peak;
use super::host::LoadMeter;
use super::memory::{buffer_bytes, dram};
use super::report::{FORMAT, Report, VERSION};
use super::{DEPTHS, DiskFile, Figure, Host, ProbeError, Quantity};
use crate::kernels::Isa;
use crate::kernels::peak::PeakLoop;

/// How much to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceilings {
    /// Memory and int8: what a benchmark's shares are of.
    Shares,
    /// Everything.
    All,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Numbers of threads, each measured.
    pub threads: Vec<usize>,
    /// Time for all figures together, apart from preparations.
    pub budget: Duration,
    /// Which figures.
    pub ceilings: Ceilings,
}

/// Measures. `disk` is read where all ceilings are asked for; `progress` hears of each figure
/// before its measurement.
pub fn probe(
    plan: &Plan,
    disk: Option<&DiskFile>,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, ProbeError> {
    let (host, isa) = (Host::look(), Isa::detect());
    if let Some(&threads) = plan.threads.iter().find(|&&t| t > host.processors) {
        return Err(ProbeError::TooManyThreads {
            threads,
            processors: host.processors,
        });
    }
    let bytes = buffer_bytes(&host)?;
    let meter = LoadMeter::start();
    let peaks = peaks(isa, plan.ceilings);
    let depths: &[usize] = if disk.is_some() { &DEPTHS } else { &[] };
    let count = plan.threads.len() * (1 + peaks.len()) + depths.len();
    let share = plan.budget / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let mut figures: Vec<Figure> = Vec::new();
    for &threads in &plan.threads {
        progress(&announce(Quantity::DramRead, threads));
        figures.push(dram(isa, threads, bytes, share)?);
    }
    for (quantity, peak_loop) in peaks {
        for &threads in &plan.threads {
            progress(&announce(quantity, threads));
            figures.push(peak(quantity, peak_loop, threads, share)?);
        }
    }
    if let Some(disk) = disk {
        for &depth in depths {
            progress(&announce(Quantity::DiskRead, depth));
            figures.push(disk.read(depth, share)?);
        }
    }
    Ok(Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        isa: isa.name().to_owned(),
        other_load: meter.and_then(LoadMeter::stop),
        disk: disk.map(DiskFile::describe),
        warnings: disk.and_then(DiskFile::warning).into_iter().collect(),
        figures,
    })
}

fn announce(quantity: Quantity, threads: usize) -> String {
    format!("{}, {threads}", quantity.title())
}

/// The arithmetic to measure.
fn peaks(isa: Isa, ceilings: Ceilings) -> Vec<(Quantity, PeakLoop)> {
    let mut peaks = vec![(Quantity::Int8Dot, PeakLoop::int8(isa))];
    if ceilings == Ceilings::All {
        peaks.extend(PeakLoop::bf16(isa).map(|peak| (Quantity::Bf16Dot, peak)));
        peaks.push((Quantity::F32MulAdd, PeakLoop::f32_mul_add(isa)));
        peaks.extend(PeakLoop::f32_fma(isa).map(|peak| (Quantity::F32Fma, peak)));
    }
    peaks
}
