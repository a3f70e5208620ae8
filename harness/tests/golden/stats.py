"""Golden values for the statistics: numpy 2 and scipy 1, run once, output kept in stats.json.

    python3 stats.py > stats.json
"""
import json
import numpy as np
from scipy import stats, optimize

rng = np.random.default_rng(7)
out = {"t_quantile": [], "t_cdf": [], "pair_order": [], "mde": [], "sign_flip": []}
for df in [1, 2, 3, 4, 6, 10, 22, 30, 100]:
    for p in [0.55, 0.9, 0.95, 0.975, 0.99, 0.995]:
        out["t_quantile"].append([p, df, stats.t.ppf(p, df)])
    for t in [-5.0, -1.5, -0.1, 0.0, 0.3, 2.0, 8.0]:
        out["t_cdf"].append([t, df, stats.t.cdf(t, df)])

for n in [3, 4, 6, 8, 12]:
    order = [1 if c else -1 for c in rng.integers(0, 2, n)]
    if abs(sum(order)) == n:
        order[0] = -order[0]
    d = rng.normal(0.1, 0.05, n) + 0.02 * np.array(order)
    x = np.column_stack([np.ones(n), order])
    coef, *_ = np.linalg.lstsq(x, d, rcond=None)
    rss = float(((d - x @ coef) ** 2).sum())
    cov = rss / (n - 2) * np.linalg.inv(x.T @ x)
    half = stats.t.ppf(0.975, n - 2) * np.sqrt(cov[0, 0])
    out["pair_order"].append({
        "d": d.tolist(), "order": order, "theta": coef[0], "beta": coef[1],
        "low": coef[0] - half, "high": coef[0] + half,
    })

for n in [4, 6, 8, 12, 24]:
    df = n - 2
    tc = stats.t.ppf(0.975, df)
    def power(delta):
        nc = delta * np.sqrt(n)
        return stats.nct.sf(tc, df, nc) + stats.nct.cdf(-tc, df, nc)
    out["mde"].append([n, optimize.brentq(lambda x: power(x) - 0.8, 0.01, 7 / np.sqrt(n))])

for q in [1, 2, 3, 6, 10]:
    e = rng.normal(0.05, 0.05, q)
    signs = np.array(np.meshgrid(*[[1, -1]] * q)).reshape(q, -1).T
    means = np.abs(signs @ e) / q
    out["sign_flip"].append({"effects": e.tolist(),
                             "p": float((means >= abs(e.mean()) * (1 - 1e-12)).mean())})
print(json.dumps(out, indent=1, default=float))
