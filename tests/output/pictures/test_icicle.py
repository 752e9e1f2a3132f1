"""The icicle with matplotlib."""

import numpy as np
import pytest

from pandas_dptree.output.pictures.boxes import boxes_of, height_for, name_of
from pandas_dptree.output.released import Released


def test_every_box_is_drawn_and_names_that_fit_are_written(counts):
    pytest.importorskip("matplotlib")
    axes = counts.dp.plot.icicle()
    released = Released.of(counts)
    drawn = boxes_of(released, released.shown(), height_for(released))
    assert len(axes.patches) == 2 * len(drawn)
    for patch, box in zip(axes.patches[::2], drawn, strict=True):
        assert (patch.get_y(), patch.get_height()) == (box.top, box.height)
        assert (patch.get_hatch() is not None) == box.pooled
    texts = " ".join(text.get_text() for text in axes.texts)
    high = [name_of(released, box) for box in drawn if box.height >= 34]
    assert len(high) > 10 and all(name in texts for name in high)
    assert "by region, district and clinic" in axes.figure.texts[0].get_text()
    axes.figure.canvas.draw()
    renderer = axes.figure.canvas.get_renderer()
    right = {round(patch.get_x() + patch.get_width(), 3) for patch in axes.patches}
    ends = axes.transData.transform([(end, 0) for end in sorted(right)])[:, 0]
    for text in axes.texts:  # none leaves its box
        extent = text.get_window_extent(renderer)
        assert extent.x1 <= ends[np.searchsorted(ends, extent.x0 + 1)]


@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names_are_text(hostile):
    pytest.importorskip("matplotlib")
    axes = hostile.dp.plot.icicle()
    axes.figure.canvas.draw()
    assert any("&amp; 100 %" in text.get_text() for text in axes.texts)
