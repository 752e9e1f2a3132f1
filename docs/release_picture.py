"""Draw the README's picture: `python docs/release_picture.py` writes docs/_static/release.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pandas_dptree as dpt

visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
by = ["region", "district", "clinic"]
# The seed is fixed, so that the picture is the same whenever it is drawn.
counts = visits.dp.tree_counts(
    by, epsilon=1.0, domain=clinics, privacy_unit="person", max_contributions=2, rng=np.random.default_rng(0)
)
# The simulated truth: of a person with n visits, each is kept with probability 2 / n.
kept = (2 / visits.groupby("person")["person"].transform("size")).clip(upper=1)

fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", width_ratios=[1, 1.6])
places = [("district", ("Corrow",)), ("clinic", ("Corrow", "Heronby"))]
for ax, (level, place) in zip(axes, places, strict=True):
    released = counts.dp.level(level).xs(place)
    truth = kept.groupby([visits[key] for key in by[: len(place) + 1]]).sum().xs(place)
    truth = truth.reindex(released.index, fill_value=0)
    ax.bar(released.index, released["count"], yerr=2 * released["std_error"], capsize=2, alpha=0.5)
    ax.plot(released.index, truth, "kx", label="truth (simulated)")
    plt.setp(ax.get_xticklabels(), rotation=60, ha="right", rotation_mode="anchor")
    ax.set(title=f"{' → '.join(place)}: visits by {level}", ylim=(0, None))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("released count ± 2 standard errors")
axes[1].legend(frameon=False)
fig.savefig(Path(__file__).parent / "_static" / "release.png", dpi=110)
