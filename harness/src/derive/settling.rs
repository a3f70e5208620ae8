//! What would settle a margin that an interval leaves open, in the words of gate and report.

use super::figure::Published;
use crate::stats::MOST_QUARTETS;

/// By the figure of how many quartets would; absent in archives that do not have it.
pub fn settling(quartets: Option<&Published>) -> String {
    let Some(figure) = quartets else {
        return "how many quartets would is not computed here".to_owned();
    };
    match figure.value() {
        Some(n) => format!(
            "{n} quartets ({}: {} sessions an arm) would, 4 times in 5, were effect and noise as seen here",
            figure.label().letter(),
            n * 2.0
        ),
        None => {
            format!("the effect seen lies too close to it for {MOST_QUARTETS} quartets to do so")
        }
    }
}
