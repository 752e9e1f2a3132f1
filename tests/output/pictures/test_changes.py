"""Changes between two releases as a picture."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt

plt = pytest.importorskip("matplotlib.pyplot")
OPTIONS = {"epsilon": 1.0, "domain": ["a", "b", "c"], "keep": ["linear"]}


def table(counts, seed):
    records = pd.DataFrame({"k": np.repeat(["a", "b", "c"], counts)})
    return records.dp.tree_counts("k", rng=np.random.default_rng(seed), **OPTIONS)


def test_dots_are_the_changes_and_those_beyond_the_noise_are_filled():
    before, now = table([200, 300, 400], 1), table([200, 380, 400], 2)
    axes = now.dp.plot.changes(before)
    changes = now.dp.change_from(before)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["a", "b", "c"]  # not the total
    filled = {}
    for container in axes.containers:
        line = container[0]
        for x, y in zip(*line.get_data(), strict=True):
            filled[names[int(y)]] = (x, line.get_markerfacecolor() != "white")
    expected = changes.iloc[1:]
    assert filled == {
        name: (change, beyond)
        for name, change, beyond in zip(names, expected["change"], expected["beyond_noise"], strict=True)
    }
    assert filled["b"][1]
    assert "Holm" in axes.figure.texts[0].get_text()
    assert len(now.dp.plot.changes(before, n=1).get_yticklabels()) == 1
    plt.close("all")
    with pytest.raises(dpt.ArgumentError, match="before"):
        now.dp.plot.changes(now)
