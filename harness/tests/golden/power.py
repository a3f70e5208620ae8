"""Golden values for power, Holm, percentiles and alpha-spending: numpy, scipy and statsmodels, run
once, output kept in power.json (versions in it).

    python3 power.py > power.json
"""
import json

import numpy as np
import scipy
import statsmodels
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(11)
out = {"versions": {"numpy": np.__version__, "scipy": scipy.__version__,
                    "statsmodels": statsmodels.__version__}}

# P(T > critical).
out["noncentral_t_above"] = [
    [c, df, nc, float(stats.nct.sf(c, df, nc))]
    for df in [1, 2, 4, 6, 10, 22, 100]
    for c in [0.5, 2.0, float(stats.t.ppf(0.975, df))]
    for nc in [-1.0, 0.0, 0.7, 2.5, 6.0]
]


def one_sided(n, effect):
    return stats.nct.sf(stats.t.ppf(0.975, n - 2), n - 2, effect * np.sqrt(n))


def quartets(effect):
    return next((q for q in range(2, 1001) if one_sided(2 * q, effect) >= 0.8), None)


out["quartets_to_settle"] = [[e, quartets(e)] for e in
                             [3.0, 2.0, 1.5, 1.0, 0.8, 0.5, 0.3, 0.2, 0.1, 0.06]]


def detectable(n, alpha):
    tc = stats.t.ppf(1 - alpha / 2, n - 2)

    def power(delta):
        nc = delta * np.sqrt(n)
        # The far tail is nan where it is too small for nct.
        return stats.nct.sf(tc, n - 2, nc) + np.nan_to_num(stats.nct.cdf(-tc, n - 2, nc))
    return optimize.brentq(lambda x: power(x) - 0.8, 0.01, 12)


out["detectable_at"] = [[n, a, detectable(n, a)] for n in [4, 6, 12]
                        for a in [0.1, 0.05, 0.0451, 0.01]]

out["holm"] = []
for k in [1, 3, 5, 9]:
    p = rng.uniform(0, 1, k) ** 3
    out["holm"].append([p.tolist(), multipletests(p, method="holm")[1].tolist()])
ties = [0.02, 0.02, 0.01, 0.5]
out["holm"].append([ties, multipletests(ties, method="holm")[1].tolist()])

# The order statistic that bounds a percentile from above with 95% confidence.
out["bound_rank"] = []
for p in [0.5, 0.9, 0.95, 0.99]:
    for n in [5, 28, 29, 58, 59, 93, 124, 298, 299, 500]:
        ranks = np.arange(1, n + 1)
        enough = ranks[stats.binom.cdf(ranks - 1, n, p) >= 0.95]
        out["bound_rank"].append([p, n, int(enough[0]) if len(enough) else None])


# Levels of looks: each boundary from the multivariate normal of the path at the looks so far.
def spent(kind, t, alpha):
    side = alpha / 2
    if kind == "obrien-fleming":
        return 2 * 2 * stats.norm.sf(stats.norm.isf(side / 2) / np.sqrt(t))
    return 2 * side * np.log1p((np.e - 1) * t)


def inside(z, t):
    cov = np.array([[min(a, b) / np.sqrt(a * b) for b in t] for a in t])
    if len(t) == 1:
        return 1 - 2 * stats.norm.sf(z[0])
    return stats.multivariate_normal.cdf(z, mean=np.zeros(len(t)), cov=cov,
                                         lower_limit=-np.array(z), maxpts=5_000_000,
                                         abseps=1e-9, releps=1e-9, rng=3)


out["look_levels"] = []
for kind in ["obrien-fleming", "pocock"]:
    for t in [[0.5, 1.0], [1 / 3, 2 / 3, 1.0], [0.25, 0.5, 0.75, 1.0]]:
        z = []
        for k in range(len(t)):
            target = 1 - spent(kind, t[k], 0.05)
            if k == 0:
                z.append(stats.norm.isf((1 - target) / 2))
                continue
            z.append(optimize.brentq(lambda c: inside(z + [c], t[:k + 1]) - target, 1.5, 6,
                                     xtol=1e-7))
        out["look_levels"].append([kind, t, [float(2 * stats.norm.sf(x)) for x in z]])

# p of theta and deviation of the pair-plus-order fit, by statsmodels' least squares.
import statsmodels.api as sm  # noqa: E402

out["pair_order"] = []
for n in [4, 6, 8, 12]:
    order = np.tile([1, -1], n // 2)
    d = rng.normal(0.02, 0.03, n) + 0.01 * order
    fit = sm.OLS(d, sm.add_constant(order)).fit()
    low, high = fit.conf_int(alpha=0.02)[0]
    out["pair_order"].append({"d": d.tolist(), "order": order.tolist(), "p": fit.pvalues[0],
                              "deviation": np.sqrt(fit.mse_resid), "low98": low, "high98": high})
print(json.dumps(out, indent=1, default=float))
