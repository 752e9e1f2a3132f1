"""The boxes of an icicle."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.pictures.boxes import boxes_of, column_ends, height_for, name_of
from pandas_dptree.output.released import Released
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


def boxes(table, height=620.0, value=None):
    released = Released.of(table)
    return released, boxes_of(released, released.shown(value), height)


def released_of(rows, keys):
    """A table without error, of leaves and their counts."""
    frame = pd.DataFrame(rows, columns=[*keys, "n"])
    return frame.loc[frame.index.repeat(frame["n"]), keys].dp.tree_counts(
        keys, domain=frame[keys], epsilon=1e6, rng=rng()
    )


def test_boxes_tile_the_picture_and_hold_every_row_once(counts):
    released, drawn = boxes(counts)
    last = max(box.last for box in drawn)
    for column in range(last + 1):
        here = sorted((box.top, box.height) for box in drawn if box.first <= column <= box.last)
        ends = np.cumsum([0.0] + [height for _, height in here])
        assert np.allclose(ends[:-1], [top for top, _ in here]) and ends[-1] == pytest.approx(620)
    once = [row for box in drawn for row in box.rows]
    assert len(once) == len({*once})
    for box in drawn:
        assert box.height == pytest.approx(620 * box.value / counts.loc[0, "count"])
        assert (box.height >= 4) or box.pooled or len(box.rows) == 1
        assert box.value == counts["count"].iloc[list(box.rows)].sum() or not box.pooled
        if box.pooled:
            assert len(box.rows) > 1
            assert name_of(released, box) == f"{len(box.rows)} smaller" or not box.beside


def test_small_boxes_are_pooled_but_never_one_alone():
    leaves = [("big", "a", 900), *[("small", f"s{n:02d}", 1) for n in range(25)], ("big", "b", 1)]
    released, drawn = boxes(released_of(leaves, ["size", "name"]), height=300)
    assert [name_of(released, box) for box in drawn] == ["total", "big", "a", "b", "small", "all 25"]
    some = released_of([("a", 900), *[(f"s{n:02d}", 1) for n in range(25)]], ["name"])
    released, drawn = boxes(some, height=300)
    assert [name_of(released, box) for box in drawn] == ["total", "a", "25 smaller"]
    assert drawn[-1].value == 25 and drawn[-1].top + drawn[-1].height == pytest.approx(300)


def test_paths_that_end_early_and_only_children_reach_the_right_edge():
    table = released_of(
        [
            ("Ohio", "Lake", "x", 3),
            ("Ohio", "Lake", "y", 4),
            ("Utah", "Juab", "z", 2),
            ("sea", None, None, 5),
        ],
        ["state", "county", "place"],
    )
    released, drawn = boxes(table)
    spans = {name_of(released, box): (box.first, box.last) for box in drawn}
    assert spans == {
        "total": (0, 0), "Ohio": (1, 1), "Lake": (2, 2), "y": (3, 3), "x": (3, 3),
        "Utah · Juab · z": (1, 3), "sea": (1, 3),
    }  # fmt: skip


def test_times_keep_their_order_and_the_rest_is_last(addresses):
    days = dpt.calendar("day", ["month"], start="2024-01-01", end="2024-03-31")
    frame = pd.DataFrame(
        {"day": pd.to_datetime(["2024-01-05"] * 2 + ["2024-02-01"] * 9 + ["2024-03-01"] * 4)}
    )
    released, drawn = boxes(frame.dp.tree_counts(days, epsilon=1e6, rng=rng()))
    assert [name_of(released, box) for box in drawn[1:]] == ["2024-01", "2024-02", "2024-03"]
    released, drawn = boxes(addresses)
    siblings = [name_of(released, box) for box in drawn if box.first == 1]
    assert siblings == sorted(siblings, key="(other)".__eq__)


def test_columns_and_heights(counts):
    released = Released.of(counts)
    ends = column_ends(released)
    assert ends[0] == 0 and ends[-1] == pytest.approx(100) and ends[1] < 14
    assert (np.diff(ends, 2)[1:] > 0).all()  # names get longer to the right
    assert height_for(released) == 620
    assert height_for(Released.of(counts.head(1))) == 84
    branch = counts[counts["region"].eq("Corrow") & counts["level"].isin(["district", "clinic"])]
    assert len(column_ends(Released.of(branch))) == 3


def test_boxes_refuse_what_areas_cannot_show(visits, clinics, counts, means):
    def released(consistency):
        return visits.dp.tree_counts(BY, domain=clinics, epsilon=1.0, consistency=consistency, rng=rng())

    for table, fact in [
        (released("linear"), "negative values"),
        (released("none").query("count >= 0"), "does not add up"),
        (counts[counts["count"].gt(40)], "does not add up"),
        (counts.assign(count=counts["count"] + (counts["level"] == "clinic")), "does not add up"),
        (counts[counts["level"] != "district"], "lacks rows above others"),
        (means, "missing values"),
    ]:
        with pytest.raises(dpt.ArgumentError, match=fact):
            table.dp.plot.icicle()
    with pytest.raises(dpt.ArgumentError, match=r'`value` has missing.*\nHint: value="count"'):
        means.dp.plot.icicle()


def test_an_empty_table_is_one_box():
    empty = released_of([("a", 0), ("b", 0)], ["name"])
    assert [box.rows for box in boxes(empty)[1]] == [(0,)]
