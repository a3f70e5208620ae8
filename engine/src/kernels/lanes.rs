//! Sixteen f32 lanes, each with its own sums: products are rounded, then added, lane by lane.
//! Left to itself the compiler keeps such lanes in scalar registers, so on x86-64 they are spelled
//! in SSE2, on 64-bit Arm in NEON. The bits are the same everywhere.

#[cfg(target_arch = "aarch64")]
use super::neon::Quad;
#[cfg(target_arch = "x86_64")]
use super::sse2::Quad;

/// Virtual lanes of every reduction.
pub const LANES: usize = 16;

/// Four lanes.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Clone, Copy)]
struct Quad([f32; 4]);

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Quad {
    #[inline]
    fn splat(x: f32) -> Self {
        Self([x; 4])
    }
    #[inline]
    fn load(x: &[f32; 4]) -> Self {
        Self(*x)
    }
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }
    #[inline]
    fn array(self) -> [f32; 4] {
        self.0
    }
}

/// Sixteen running sums.
#[derive(Clone, Copy)]
pub struct Lanes([Quad; 4]);

impl Lanes {
    /// All zero.
    #[inline]
    pub fn zero() -> Self {
        Self([Quad::splat(0.0); 4])
    }

    #[inline]
    fn quads(x: &[f32; LANES]) -> [Quad; 4] {
        let (quads, _) = x.as_chunks::<4>();
        std::array::from_fn(|i| Quad::load(&quads[i]))
    }

    /// Adds `x * y`, lane by lane.
    #[inline]
    pub fn add_products(&mut self, x: &[f32; LANES], y: &[f32; LANES]) {
        let (x, y) = (Self::quads(x), Self::quads(y));
        for i in 0..4 {
            self.0[i] = self.0[i].add(x[i].mul(y[i]));
        }
    }

    /// Adds `x`, lane by lane.
    #[inline]
    pub fn add(&mut self, x: &[f32; LANES]) {
        for (sum, x) in self.0.iter_mut().zip(Self::quads(x)) {
            *sum = sum.add(x);
        }
    }

    /// The lanes that hold `x`.
    #[inline]
    pub fn load(x: &[f32; LANES]) -> Self {
        Self(Self::quads(x))
    }

    /// The sums.
    #[inline]
    pub fn array(self) -> [f32; LANES] {
        let quads = self.0.map(Quad::array);
        std::array::from_fn(|i| quads[i / 4][i % 4])
    }

    /// The pairwise tree: lane 0 with 8, 1 with 9, ...; then 0 with 4, and so on.
    #[inline]
    pub fn tree(self) -> f32 {
        let [a, b, c, d] = self.0;
        let quad = a.add(c).add(b.add(d)).array();
        (quad[0] + quad[2]) + (quad[1] + quad[3])
    }
}
