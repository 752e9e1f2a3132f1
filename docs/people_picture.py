"""Draw the noise of levels: `python docs/people_picture.py` writes docs/_static/people.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pandas_dptree as dpt

RHO, BRANCHING, LEVELS = 0.1, [10, 10], ["total", "region", "clinic"]


def std_errors(k: int, m: int | None) -> tuple[float, ...]:
    """Plan a total, 10 regions and 100 clinics."""
    unit = {"privacy_unit": "person", "max_contributions": k, "max_per_leaf": m}
    return dpt.plan(dpt.Tree.from_branching(BRANCHING), rho=RHO, **unit).std_errors


fig, axes = plt.subplots(1, 3, figsize=(7, 3.2), layout="constrained", sharey=True)
for ax, k in zip(axes, (3, 12, 52), strict=True):
    alone = np.sqrt(k / (2 * RHO) * np.array([100, 10, 1]))  # one row a clinic, added up
    ax.plot(LEVELS, std_errors(k, None), "o-", label="at most k rows in all")
    ax.plot(LEVELS, std_errors(k, 1), "s-", label="and at most one in a clinic")
    ax.plot(LEVELS, alone, "x--", color="gray", label="clinics alone, added up")
    ax.set(title=f"k = {k}", yscale="log", yticks=[5, 10, 20, 50, 100, 200], ylim=(3, 300))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.grid(axis="y", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("standard error of a count")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
fig.savefig(Path(__file__).parent / "_static" / "people.png", dpi=140)
