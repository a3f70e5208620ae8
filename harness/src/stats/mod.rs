//! Estimates over sessions; never over requests.

mod estimate;
mod percentile;
mod power;
mod signflip;
mod student;
mod summary;

pub use estimate::{
    Interval, NoInterval, PairEffect, PairEstimate, PairOrder, pair_order_estimate,
};
pub use percentile::{least_observations, percentile};
pub use power::minimum_detectable_effect;
pub use signflip::{MAX_QUARTETS, SignFlip, sign_flip};
pub use student::{t_cdf, t_quantile};
pub use summary::{median, weighted_rate};
