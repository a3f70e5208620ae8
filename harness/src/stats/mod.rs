//! Estimates over sessions; never over requests.

mod bound;
mod decide;
mod estimate;
mod holm;
mod noncentral;
mod normal;
mod percentile;
mod power;
mod signflip;
mod spending;
mod student;
mod summary;

pub use bound::{PerSession, percentile_upper_bound};
pub use decide::{
    ALPHA, Decision, Difference, against_margin, difference, log_margin, within_margin,
};
pub use estimate::{
    Interval, NoInterval, Noise, PairEffect, PairEstimate, PairOrder, pair_order_estimate,
    pair_order_estimate_at,
};
pub use holm::holm;
pub use noncentral::noncentral_t_above;
pub use normal::{normal_cdf, normal_upper, normal_upper_quantile};
pub use percentile::{least_observations, percentile};
pub use power::{
    MOST_QUARTETS, POWER, detectable_at, minimum_detectable_effect, quartets_to_settle,
};
pub use signflip::{MAX_QUARTETS, SignFlip, sign_flip};
pub use spending::{Spending, look_levels};
pub use student::{t_cdf, t_quantile};
pub use summary::{median, weighted_rate};
