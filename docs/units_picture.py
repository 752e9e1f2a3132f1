"""Draw the errors of counts of people: `python docs/units_picture.py` writes docs/_static/units.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pandas_dptree as dpt

BY, RELEASES = ["region", "district", "clinic"], 100
WAYS = {
    "each level by itself": ("s--", {"max_nodes": 4, "split": "uniform", "consistency": "none"}),
    "one clinic a person": ("x--", {"max_nodes": 1}),
    "tree_units": ("o-", {"max_nodes": 4}),
}
VISITS, CLINICS = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
EXACT = pd.concat(
    [VISITS.drop_duplicates(["person", *BY[:n]]).groupby(BY[:n], as_index=False).size() for n in (1, 2, 3)]
)


def errors(loss: dict[str, float], **options: object) -> pd.Series:
    """Release the table many times: root mean squared errors by level, against all people."""
    plan = VISITS.dp.plan_units(BY, domain=CLINICS, privacy_unit="person", **loss, **options)
    tables = [plan.release(VISITS, rng=np.random.default_rng(seed)) for seed in range(RELEASES)]
    released = pd.concat(tables).query("level != 'total'").merge(EXACT, on=BY, how="left")
    squares = (released["count"] - released["size"].fillna(0)) ** 2
    return squares.groupby(released["level"].astype(str)).mean().pow(0.5)[BY]


fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
for ax, (title, loss) in zip(axes, {"ε = 1": {"epsilon": 1.0}, "ρ = 0.1": {"rho": 0.1}}.items(), strict=True):
    for (way, (style, options)), color in zip(WAYS.items(), ("C1", "gray", "C0"), strict=True):
        ax.plot(BY, errors(loss, **options), style, color=color, label=way)
    ax.set(title=title, yscale="log", yticks=[5, 10, 20, 50, 100, 200, 500], ylim=(4, 700), xlim=(-0.3, 2.3))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.grid(axis="y", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("root mean squared error")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
fig.savefig(Path(__file__).parent / "_static" / "units.png", dpi=140)
