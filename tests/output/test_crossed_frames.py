"""Released tables of crossed hierarchies: their layout, and margins as ``groupby`` gives them."""

import contextlib
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.crossed_domain import cross
from pandas_dptree.ledger.kept_tables import from_bytes, to_bytes
from pandas_dptree.output import crossed_frames
from pandas_dptree.output.crossed_frames import check_rows
from pandas_dptree.output.table_digest import how_altered, state_digest
from tests.helpers_cases import each
from tests.helpers_crossed_tables import KEYS, domain, leaf_cells, table_of, whole
from tests.helpers_random import each_seed

LEVELS = [["total", *keys] for keys in KEYS.values()]
SOME = [{"place": "county", "age": "years"}, {"what": "size_level"}, {"place": "state", "when": "month"}, {}]


def margins():
    return [dict(zip(KEYS, levels, strict=True)) for levels in itertools.product(*LEVELS)]


def by_of(margin):
    return [key for axis, level in margin.items() for key in KEYS[axis] if level != "total"
            and list(KEYS[axis]).index(key) <= list(KEYS[axis]).index(level)]  # fmt: skip


def test_rows_are_the_shown_cells_in_order():
    table, crossed = whole(), domain()
    assert list(table) == [*(f"{axis}_level" for axis in KEYS), *crossed.by, "count", "std_error"]
    for axis, levels in zip(KEYS, LEVELS, strict=True):
        column = table[f"{axis}_level"]
        assert column.cat.ordered and list(column.cat.categories) == levels
    named = [dict(zip(KEYS, row, strict=True)) for row in table.iloc[:, : len(KEYS)].to_numpy().tolist()]
    assert [key for key, _ in itertools.groupby(named)] == margins()
    places = crossed.tree.axes[0]
    assert (
        len(table)
        == sum(crossed.tree.n_listed(level) for level in range(len(margins())))
        < sum(crossed.tree.level_sizes)
    )
    assert not places.listed(2).all()  # the chain below DC has no row
    for axis, keys in KEYS.items():
        level = table[f"{axis}_level"].cat.codes
        for depth, key in enumerate(keys, start=1):
            assert (table[key].notna() == (level >= depth)).all()
    assert (table["std_error"] == 1.5 + table.groupby(list(table)[:4], observed=True).ngroup()).all()


@each_seed(5, 54)
def test_a_margin_is_indexed_as_by_groupby(seed):
    """A record or more in each cell, with keys of text, numbers, periods, categories and intervals."""
    margin = margins()[-seed * 11 % 54]
    cells = leaf_cells()
    records = cells.loc[np.repeat(cells.index, 1 + np.arange(len(cells)) % 3)]
    table = table_of(domain(), 1 + np.arange(len(cells)) % 3)
    by = by_of(margin)
    chosen = table.dp.margin(margin)
    if not by:
        assert chosen["count"].tolist() == [len(records)] and table.dp.margin().equals(chosen)
        return
    expected = records.groupby(by, observed=False).size()
    expected = expected.loc[expected > 0] if len(by) > 1 else expected  # no empty combinations of categories
    pd.testing.assert_series_equal(chosen["count"], expected, check_names=False)
    assert list(chosen) == ["count", "std_error"]
    names = [level for level in margin.values() if level != "total"]
    for same in (
        table.dp.margin(**margin),
        table.dp.margin(names),
        table.dp.margin(*names),
        table.dp.margin(" × ".join(names)),
    ):
        pd.testing.assert_frame_equal(same, chosen)


def test_some_margins_alone():
    """Keys of axes and levels that no margin has stay, with the type that they always have."""
    crossed = domain().with_margins(SOME)
    leaves = np.arange(crossed.tree.n_leaves)
    table = table_of(crossed, leaves)
    assert table.dtypes.equals(whole().dtypes)
    for margin, level in zip(crossed.tree.shown, map(crossed.tree.level_of, crossed.tree.shown), strict=True):
        given = {axis: levels[depth] for axis, levels, depth in zip(KEYS, LEVELS, margin, strict=True)}
        listed = crossed.tree.listed(level)
        assert (
            table.dp.margin(given)["count"].tolist() == crossed.tree.roll_up(leaves)[level][listed].tolist()
        )
    with pytest.raises(dpt.ArgumentError, match="without rows"):
        table.dp.margin({"place": "county"})
    shown = table.dp.margin(what="size_level")
    assert shown.index.names == ["kind", "size_level"] and shown.index.dtypes["size_level"] == np.int64


def read_back(table, path):
    for name in ("table.csv", "table.parquet"):
        table.dp.to_file(path / name)
        yield dpt.read_file(path / name)
    yield from_bytes(to_bytes(table))[0]
    yield pd.read_parquet(path / "table.parquet")
    yield pd.DataFrame(table.to_dict("list"))  # without categories


def test_margins_after_files_filters_and_a_ledger(tmp_path):
    table = state_digest(whole())
    assert how_altered(table) is None and how_altered(table.iloc[1:]) == "either"
    for kept in (table, table.loc[table["place_level"] == "county"].sample(frac=0.3, random_state=1)):
        expected = kept.dp.margin(place="county", when="year", what="kind")
        for number, back in enumerate(read_back(kept, tmp_path)):
            if number < 3:
                pd.testing.assert_frame_equal(back.reset_index(drop=True), kept.reset_index(drop=True))
                assert back.attrs == kept.attrs and how_altered(back) == how_altered(kept)
            chosen = back.dp.margin(place="county", when="year", what="kind")
            assert chosen["count"].tolist() == expected["count"].tolist() and list(chosen) == list(expected)
            assert chosen.index.names == ["state", "county", "year", "kind"]


def test_a_workbook_has_the_rows_as_they_are(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = whole().iloc[:50]
    table.dp.to_file(tmp_path / "table.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "table.xlsx").worksheets[1]
    names, *rows = sheet.iter_rows(values_only=True)
    assert [row[names.index("count")] for row in rows] == table["count"].tolist()
    assert [row[names.index("age_level")] for row in rows] == table["age_level"].tolist()


def test_margins_of_a_plain_csv(tmp_path):
    """pandas reads no categories, and numbers that may be missing as floats."""
    whole().to_csv(tmp_path / "table.csv", index=False)
    read = pd.read_csv(tmp_path / "table.csv")
    for margin in margins()[::7]:
        for kept in (read, read.loc[read["when_level"] != "month"], read.loc[read["place_level"] != "total"]):
            levels = zip(margin.items(), KEYS, strict=True)
            here = np.logical_and.reduce([kept[f"{axis}_level"] == level for (axis, level), _ in levels])
            if not here.any():
                continue
            chosen = kept.dp.margin(margin)
            assert chosen["count"].tolist() == kept.loc[here, "count"].tolist()
            assert chosen.index.names == (by_of(margin) or [None])
            assert list(chosen) == ["count", "std_error"]


@each(
    "given, message",
    [
        ({"plac": "state"}, r"`levels` has unknown axes: 'plac'.* did you mean 'place'\?"),
        ({"place": "County"}, r"has no level 'County' of the axis 'place'.* did you mean 'county'\?"),
        ({"place": "kind"}, r"its levels are \['total', 'state', 'county'\]"),
        (["state", "county"], "has two levels of the axis 'place'"),
        ("stat", r"`levels` has no level 'stat'.* did you mean 'state'\?"),
        (3, "has no level 3"),
    ],
)
def test_wrong_margins(given, message):
    with pytest.raises(dpt.ArgumentError, match=f"(?s){message}"):
        whole().dp.margin(given)


def test_one_hierarchy_has_levels_and_crossed_ones_have_margins():
    table = whole()
    counts = pd.DataFrame({"k": ["a"]}).dp.tree_counts("k", domain=["a"], epsilon=1.0)
    with pytest.raises(dpt.ArgumentError, match=r"(?s)has no margins.*counts\.dp\.level\("):
        counts.dp.margin(k="k")
    with pytest.raises(dpt.ArgumentError, match=r"(?s)has no margins.*frame that tree_counts returned"):
        counts.dp.level("k").dp.margin()
    with pytest.raises(dpt.ArgumentError, match="cannot be given with levels by keywords"):
        table.dp.margin({"age": "years"}, place="state")
    with pytest.raises(dpt.ColumnsError, match=r"(?s)lacks the columns of levels: 'county'"):
        table.drop(columns="county").dp.margin(place="county")
    for refused in (lambda: table.dp.level("state"), lambda: table.dp.plot.levels()):
        with pytest.raises(
            dpt.ArgumentError, match=r"(?s)table of crossed hierarchies.*\.dp\.margin\({'place'"
        ):
            refused()
    assert {*dir(table.dp)} == {*dir(table.head(1).dp)} >= {"domain", "margin", "proportions", "to_file"}
    assert "level" not in dir(table.dp)
    assert "margin" not in dir(counts.dp) and "margin" not in dir(pd.DataFrame({"sea_level": [1]}).dp)


def test_columns_beside_the_counts_may_be_masked():
    crossed = domain()
    masked = [np.ma.array(np.arange(size), mask=np.arange(size) > 1) for size in crossed.tree.level_sizes]
    table = table_of(crossed, np.zeros(crossed.tree.n_leaves, int), measurement=masked)
    assert table["measurement"].dtype == "Int64" and table.dp.margin(what="kind")["measurement"].tolist() == [
        0,
        1,
    ]
    assert table.dp.margin(place="state")["measurement"].isna().tolist() == [False, False, True]


def test_frames_with_too_many_rows_are_refused(monkeypatch):
    crossed = domain()
    monkeypatch.setattr(crossed_frames, "MOST_ROWS", len(whole()))
    check_rows(crossed)
    monkeypatch.setattr(crossed_frames, "MOST_ROWS", 30)
    with pytest.raises(
        dpt.ArgumentError,
        match=r"(?s)frame of \d+ rows, and 30.*state × month × kind × years' alone has 36.*array",
    ):
        check_rows(crossed)
    with pytest.raises(dpt.ArgumentError, match="36 rows") as refused:
        check_rows(crossed.with_margins([("county", "month", "size_level", "years")]))
    assert "margins" not in str(refused.value)


def test_labels_that_are_not_released_leave_no_trace():
    """Neither unused categories of a public list, nor the keys of levels below all margins."""
    keys = pd.DataFrame({"state": pd.Categorical(["CA", "WA"], ["CA", "secret", "WA"])})
    keys["county"] = keys["state"].cat.rename_categories({"CA": "Kern", "WA": "King"})
    crossed = cross(place=dpt.Domain.from_frame(keys, by=["state", "county"]), what=domain().axes["what"])
    crossed = crossed.with_margins(["state", "kind"])
    table = table_of(crossed, np.zeros(4, int))
    assert "secret" not in table["state"].cat.categories and not len(table["county"].cat.categories)
    assert table["size_level"].isna().all() and table["size_level"].dtype == "Int64"
    assert not any(label in pickle.dumps(table) for label in (b"secret", b"Kern", b"King"))


def test_a_ledger_keeps_released_tables(tmp_path):
    """Also their linear estimates, in rows of the table: they add up over counties, but for short paths."""
    ledger = dpt.Ledger.create(tmp_path / "l.sqlite", account="a", rho=9.0, privacy_unit=dpt.ROWS)
    cells = leaf_cells()
    by = {axis: list(keys) for axis, keys in KEYS.items()}
    margins = [{"place": "county", "what": "kind"}, {"place": "state"}, {"age": "years"}]
    counts = cells.loc[np.repeat(cells.index, 20)].dp.tree_counts(
        by, domain=KEYS, rho=1.0, margins=margins, split="uniform", ledger=ledger["a"], note="1"
    )
    number = counts.attrs["dp"]["ledger"]["charge"]
    assert how_altered(counts, ledger) is None and how_altered(counts[::2], ledger) == "selected"
    pd.testing.assert_frame_equal(ledger.table(number), counts)
    whole = ledger.table(number, linear=True)
    pd.testing.assert_frame_equal(whole.drop(columns="linear"), counts)
    assert how_altered(whole) is None and np.abs(whole["linear"] - whole["count"]).max() < 30
    sums = whole.dp.margin(place="county", what="kind")["linear"].groupby("state").sum()
    states = whole.dp.margin(place="state")["linear"]
    assert np.allclose(sums, states.drop("DC")) and np.isclose(
        states.sum(), whole.dp.margin(age="years")["linear"].sum()
    )
    with pytest.warns(dpt.DPTreeWarning, match="already a release"), contextlib.suppress(dpt.DPTreeError):
        counts.dp.tree_counts(by, domain=KEYS, rho=1.0)
