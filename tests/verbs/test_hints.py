"""Mistakes that newcomers make, each met by a message that says what would work; and what is accepted."""

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, DPTreeError, arrays
from tests.helpers_cases import each

N = 400
FRAME = pd.DataFrame(
    {
        "Day": ["Mon", "Tue"] * (N // 2),
        "Region": ["N", "S"] * (N // 2),
        "flag": [True, False] * (N // 2),
        "cost": np.arange(N) % 100.0,
        "person": np.arange(N) // 2,
        "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) % 300, "D"),
    }
)
DAYS = pd.DataFrame({"Day": ["Mon", "Tue"]})
PLACES = pd.DataFrame({"Region": ["N", "N", "S", "S"], "Day": ["Mon", "Tue"] * 2})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["Region", "Day"])
COUNTS = FRAME.dp.tree_counts(["Region", "Day"], epsilon=1.0, domain=PLACES)
ARRAY = xr.DataArray(np.full((3, 4), 50), dims=["state", "month"], coords={"state": ["a", "b", "c"]})
DATASET = xr.Dataset({"u": ARRAY, "v": ARRAY})


def counts(by="Day", domain=DAYS, **options):
    return FRAME.dp.tree_counts(by, **{"epsilon": 1.0, "domain": domain, **options})


def sums(columns="cost", by="Day", domain=DAYS, **options):
    return FRAME.dp.tree_sums(
        by, columns=columns, domain=domain, **{"epsilon": 1.0, "bounds": (0, 9), **options}
    )


def units(**options):
    return FRAME.dp.tree_units(["Region", "Day"], domain=PLACES, **{"epsilon": 1.0, **PEOPLE, **options})


PEOPLE = {"privacy_unit": "person", "max_nodes": 2}
EACH_ROW = {"privacy_unit": dpt.ROWS}
RENAMED = COUNTS.rename(columns={"Day": "day"})
MISTAKES = {
    # how much may leak
    "rho with delta": (
        lambda: counts(epsilon=None, rho=0.1, delta=1e-6),
        "`delta` cannot be given together with `rho`",
        r"dpt.plan\(domain, epsilon=1.0, delta=1e-6\) finds the noise",
    ),
    # private keys
    "sums by private keys": (
        lambda: sums(private_keys=["Day"], delta=1e-6, **EACH_ROW),
        "`private_keys` is not an argument of tree_sums",
        r"domain=counts.dp.domain\(\)",
    ),
    "a plan of private keys alone": (
        lambda: dpt.plan(private_keys=["Day"], epsilon=1.0, delta=1e-6, **EACH_ROW),
        "`domain` must be given to plan",
        "pass None if all keys are private",
    ),
    "a list where a plan with private keys has a Domain": (
        lambda: dpt.plan(["N", "S"], private_keys=["Day"], epsilon=1.0, delta=1e-6, **EACH_ROW),
        "`domain` must be a Domain of the public keys, not a list",
        r"dpt.Domain.from_frame\(places",
    ),
    "truncated Laplace noise by a rho": (
        lambda: counts(
            domain=None,
            private_keys=["Day"],
            epsilon=None,
            rho=0.1,
            delta=1e-6,
            mechanism="truncated_laplace",
            **EACH_ROW,
        ),
        "`mechanism` cannot be 'truncated_laplace' with a rho",
        "pass an epsilon in place of the rho",
    ),
    # distinct units
    "units without a bound": (
        lambda: FRAME.dp.tree_units("Day", domain=DAYS, epsilon=1.0, privacy_unit="person"),
        "`max_nodes` must be given: it bounds the number of nodes of a level",
        r'for example max_nodes=4, or max_nodes={"region": 1, "clinic": 4}',
    ),
    "units with a bound on rows": (
        lambda: units(max_contributions=2),
        "`max_contributions` is not an argument of tree_units",
        "max_nodes bounds",
    ),
    "units with a bound on rows in a node": (
        lambda: dpt.plan_units(DOMAIN, epsilon=1.0, max_nodes=2, privacy_unit="person", max_per_leaf=1),
        "`max_per_leaf` is not an argument of plan_units",
        "max_nodes bounds",
    ),
    "units that are rows": (
        lambda: units(privacy_unit=dpt.ROWS),
        "`privacy_unit` must name the column whose distinct values are counted",
        "Rows that are units of their own are counted by tree_counts",
    ),
    "units that are not stated": (
        lambda: units(privacy_unit=None),
        "`privacy_unit` must name the column",
        'privacy_unit="person_id"',
    ),
    "a bound of a level in another case": (
        lambda: units(max_nodes={"region": 1, "Day": 2}),
        r"`max_nodes` names unknown levels: \['region'\]",
        "did you mean 'Region'? the levels are",
    ),
    "a bound of the first level alone": (
        lambda: units(max_nodes={"Region": 1}),
        "`max_nodes` must bound the deepest level, 'Day'",
        "for example max_nodes=4",
    ),
    "bounds that fall": (
        lambda: units(max_nodes={"Region": 2, "Day": 1}),
        "`max_nodes` allows a unit more nodes of 'Region', 2, than of 'Day', 1",
        "raise the latter",
    ),
    "half a node": (lambda: units(max_nodes=1.5), "`max_nodes` must be a whole number", "max_nodes=4"),
    "known regions of units": (
        lambda: units(known={"Region": pd.Series({"N": 5})}),
        "`known` must be the total alone, where distinct units are counted",
        "state that of 'total' alone: a unit may be in several of the others",
    ),
    "units alone among aggregations": (
        lambda: FRAME.dp.tree_agg("Day", {"n": "units"}, domain=DAYS, epsilon=1.0, **PEOPLE),
        "`aggregations` counts distinct units alone",
        "use tree_units, or add the number of their rows",
    ),
    "distinct values of a column": (
        lambda: FRAME.dp.tree_agg("Day", {"n": "nunique"}, domain=DAYS, epsilon=1.0, **PEOPLE),
        "`aggregations` has an invalid entry, 'n': 'nunique'",
        '"count", "units", "count_per_unit"',
    ),
    "a long list of bounds to compare": (
        lambda: dpt.plan_units(DOMAIN, epsilon=1.0, **PEOPLE).compare(max_nodes=[2] * 20 + [-4711]),
        "`max_nodes` must list whole numbers of at least 1, or mappings, not an int",
        r"for example max_nodes=\[1, 2, 4, 8\]",
    ),
    "counts of nodes that hold records": (
        lambda: dpt.plan_units(DOMAIN, epsilon=1.0, **PEOPLE).release(np.array([1, 2, 3, 4])),
        "`data` holds counts, which do not say in how many nodes each unit is",
        "release the records, with the column of the privacy unit",
    ),
    # what functions take
    "a misspelled option": (
        lambda: counts(eplison=1),
        "`eplison` is not an argument of tree_counts",
        "'epsilon'?",
    ),
    "a short name": (lambda: dpt.plan(DOMAIN, eps=1), "`eps` is not an argument of plan", "'epsilon'?"),
    "an option of its own": (
        lambda: counts(seed=0),
        "`seed` is not an argument of tree_counts",
        "it takes by, epsilon, .*, rng, progress",
    ),
    "two misspelled options": (
        lambda: counts(Delta=0, Rho=None),
        "`Delta` is not an argument",
        "'delta' for 'Delta' and 'rho' for 'Rho'?",
    ),
    "of a series": (
        lambda: FRAME["cost"].dp.quantiles(0.5, bound=(0, 9), epsilon=1),
        "`bound` is not an argument of quantiles",
        "'bounds'?",
    ),
    "of an array": (lambda: ARRAY.dp.plan("state", Rho=1), "`Rho` is not an argument of plan", "'rho'?"),
    "sums without bounds": (
        lambda: dpt.tree_sums(FRAME, "Day", columns="cost", epsilon=1.0, domain=DAYS),
        "`bounds` must be given to tree_sums",
        r"bounds=\(0, 500\), known without looking at the records",
    ),
    "means without bounds": (
        lambda: FRAME.dp.tree_means("Day", columns="cost", epsilon=1.0, domain=DAYS),
        "`bounds` must be given to tree_means",
        r"bounds=\(0, 500\)",
    ),
    "sums of an array without bounds": (
        lambda: ARRAY.dp.tree_sums("state", epsilon=1.0),
        "`bounds` must be given to tree_sums",
        r"bounds=\(0, 500\)",
    ),
    "a plan of sums without bounds": (
        lambda: dpt.plan(DOMAIN, epsilon=1.0, column="cost"),
        "`bounds` must be given for the column 'cost'",
        r"bounds=\(0, 500\)",
    ),
    "quantiles without bounds": (
        lambda: FRAME.dp.quantiles("cost", 0.5, epsilon=1.0),
        "`bounds` must be given to draw quantiles",
        r"bounds=\(0, 200\)",
    ),
    "quantiles in bins without bounds": (
        lambda: FRAME.dp.quantiles("cost", [0.1, 0.9], epsilon=1.0),
        "`bounds` must be given if `bins` is a number",
        r"bounds=\(0, 200\)",
    ),
    "a distribution without bins": (
        lambda: dpt.plan_distribution("cost", bounds=(0, 9), epsilon=1.0),
        "`bins` must be given to plan_distribution",
        "bins=100",
    ),
    "widths without bounds": (
        lambda: dpt.cut("cost", width=10),
        "`bounds` must be given if no ends are listed",
        r"bounds=\(0, 120\)",
    ),
    "a map without bounds": (
        lambda: counts(dpt.quadtree("cost", "person", depth=2), None),
        "`bounds` of the quadtree 'quad' must be given",
        r"bounds=\(\(47.0, 55.1\), \(5.8, 15.1\)\)",
    ),
    "a map without depth": (
        lambda: dpt.quadtree("lat", "lon"),
        "`depth` must be given to quadtree",
        "depth=8",
    ),
    "a calendar without dates": (
        lambda: dpt.calendar("date", ["year"]),
        "`start` and `end` must be given to calendar",
        'start="2024-01-01", end="2025-12-31"',
    ),
    "a calendar without an end": (
        lambda: dpt.calendar("date", ["year"], start="2024-01-01"),
        "`end` must be given to calendar",
        'end="2025-12-31"',
    ),
    "no keys": (
        lambda: FRAME.dp.tree_counts(epsilon=1.0, domain=DAYS),
        "`by` must be given to tree_counts",
        r'by=\["state", "county", "city"\]',
    ),
    "nothing to give an example of": (
        lambda: dpt.mapping(by="Day"),
        "`table` must be given to mapping",
        "it takes table, by",
    ),
    "keys one by one": (
        lambda: FRAME.dp.tree_counts("Region", "Day", epsilon=1.0, domain=PLACES),
        "`by` is the last argument that tree_counts takes by position",
        r'as in epsilon=...; several columns are one list, as in \["state", "city"\]',
    ),
    "the frame twice": (
        lambda: FRAME.dp.tree_counts(FRAME, by="Day", epsilon=1.0, domain=DAYS),
        "`by` is given to tree_counts twice",
        "frame.dp and array.dp pass the frame",
    ),
    "all by position": (
        lambda: dpt.relative(0.1, 100),
        "`share` is the last argument that relative takes by position",
        "as in of=...",
    ),
    # names
    "by in another case": (lambda: counts("day"), "`domain` lacks the columns: 'day'", "did you mean 'Day'?"),
    "by in another case than the records'": (
        lambda: counts("day", ["Mon", "Tue"]),
        "`frame` lacks the columns: 'day'",
        "did you mean 'Day'?",
    ),
    "several names": (
        lambda: counts(["regoin", "day"], PLACES),
        "`domain` lacks the columns: 'regoin', 'day'",
        "did you mean 'Region' for 'regoin' and 'Day' for 'day'?",
    ),
    "several names of records, which are suggested if they differ in case alone": (
        lambda: counts(["regoin", "day"], "observed"),
        "`frame` lacks the columns: 'regoin', 'day'",
        "^did you mean 'Day' for 'day'?$",
    ),
    "a unit in another case": (
        lambda: counts(privacy_unit="Person", max_contributions=1),
        "`frame` lacks the columns: 'Person'",
        "did you mean 'person'?",
    ),
    "a sum in another case": (
        lambda: sums("Cost"),
        "`frame` lacks the columns: 'Cost'",
        "did you mean 'cost'?",
    ),
    "a date in another case": (
        lambda: counts(dpt.calendar("Date", "year", start="2024-01-01", end="2024-12-31"), None),
        "`frame` lacks the columns: 'Date'",
        "did you mean 'date'?",
    ),
    "keys in the index": (
        lambda: FRAME.set_index("Day").dp.tree_counts("Day", epsilon=1.0, domain=DAYS),
        "`frame` lacks the columns: 'Day'",
        r"reset_index\(\)",
    ),
    "public keys in the index": (
        lambda: counts("Day", DAYS.assign(n=1).set_index("Day")),
        "`domain` lacks the columns: 'Day'",
        r"reset_index\(\)",
    ),
    "a name like none": (
        lambda: counts("weekday_of_visit"),
        "`domain` lacks the columns: 'weekday_of_visit'",
        r"has \['Day'\]",
    ),
    "a coordinate in another case": (
        lambda: ARRAY.dp.tree_counts("State", epsilon=1.0),
        "neither dimensions nor coordinates of the array: 'State'",
        "did you mean 'state'?",
    ),
    "a variable in another case": (
        lambda: DATASET.dp.tree_counts("state", variables=["U"], epsilon=1.0),
        "not data variables of the dataset: 'U'",
        "did you mean 'u'?",
    ),
    "a level in another case": (
        lambda: counts(level_weights={"day": 2}),
        r"`level_weights` names unknown levels: \['day'\]",
        "did you mean 'Day'? the levels are",
    ),
    # keys
    "flags against numbers": (
        lambda: counts("flag", [0, 1]),
        "'flag' holds booleans, not numbers",
        r"booleans to numbers with astype\(int\)",
    ),
    "numbers against flags": (
        lambda: FRAME.astype({"flag": int}).dp.tree_counts("flag", epsilon=1.0, domain=[True, False]),
        "'flag' holds numbers, not booleans",
        r"booleans to numbers with astype\(int\)",
    ),
    "dates against text": (
        lambda: counts("date", ["2024-01-01"]),
        "'date' holds times, not text",
        "text to dates with pd.to_datetime",
    ),
    "levels of an index without names": (
        lambda: counts(["Region", "Day"], pd.MultiIndex.from_frame(PLACES, names=[None, None])),
        "`domain` lacks the columns: 'Region', 'Day'",
        r"domain=index.set_names\(\['Region', 'Day'\]\)",
    ),
    "counts for keys": (
        lambda: counts("Day", FRAME.groupby("Day").size()),
        "`domain` lacks the columns: 'Day'",
        r"reset_index\(\)",
    ),
    "counts by unnamed keys": (
        lambda: counts("Day", pd.Series({"Mon": 5, "Tue": 7})),
        "`domain` lacks the columns: 'Day'",
        "it needs every column named in the call",
    ),
    "a series of another name": (
        lambda: counts("Day", pd.Series(["Mon", "Tue"], name="Region")),
        "`domain` lacks the columns: 'Day'",
        r"has \['Region'\]",
    ),
    "a list for several keys": (
        lambda: counts(["Region", "Day"], [("N", "Mon"), ("S", "Tue")]),
        "`domain` must be a table that can be read, not a list",
        r"pd.DataFrame\(\{'Region': \[...\], 'Day': \[...\]\}\)",
    ),
    "a table for one key": (
        lambda: counts("Day", np.array([["Mon", "Tue"]])),
        "`domain` must be a table that can be read, not an ndarray",
        "pass a frame",
    ),
    "columns to add up by position": (
        lambda: FRAME.dp.tree_sums("cost", ["Region", "Day"], bounds=(0, 9), epsilon=1.0, domain=PLACES),
        "`by` is the last argument that tree_sums takes by position",
        "name the others, as in columns=",
    ),
    "columns of a plan by position": (
        lambda: dpt.plan_means(DOMAIN, "cost", bounds=(0, 9)),
        "`domain` is the last argument that plan_means takes by position",
        "name the others, as in columns=",
    ),
    # released tables
    "a column renamed": (
        lambda: RENAMED.dp.level("Day"),
        "`released` lacks the columns of levels: 'Day'",
        "rename columns and levels together",
    ),
    "a level not renamed": (
        lambda: RENAMED.dp.level("day"),
        "`name` is not a level: 'day'",
        r"the levels are \['total', 'Region', 'Day'\]; rename columns and levels together",
    ),
    "a level renamed alone": (
        lambda: COUNTS.assign(level=COUNTS["level"].cat.rename_categories({"Day": "day"})).dp.level("day"),
        "`released` lacks the columns of levels: 'day'",
        "rename columns and levels together",
    ),
    "levels of a table with an index": (
        lambda: COUNTS.set_index(["Region", "Day"]).dp.level("Day"),
        "`released` lacks the columns of levels: 'Region', 'Day'",
        r"reset_index\(\)",
    ),
    "a plot of no kind": (lambda: COUNTS.dp.plot(), "`plot` has several kinds of plots", r"plot.levels\(\)"),
    # types
    "a number for records": (
        lambda: dpt.tree_counts(3, "Day", epsilon=1.0, domain=DAYS),
        "`frame` must be a dataframe, not an int",
        "pass a frame of pandas",
    ),
    "a number for keys": (
        lambda: counts("Day", 3),
        "`domain` must be a table that can be read, not an int",
        "pass a frame",
    ),
    "a list for an array": (
        lambda: arrays.tree_counts([1, 2], "state", epsilon=1.0),
        "`array` must be an xarray.DataArray, not a list",
        "dpt.tree_counts",
    ),
    "a seed for a generator": (
        lambda: counts(rng=0),
        "`rng` must be a numpy.random.Generator, not an int",
        "numpy.random.default_rng",
    ),
    "a class for noise": (
        lambda: counts(mechanism=dpt.Laplace),
        "`mechanism` is unknown: the class Laplace",
        r"pass an instance, Laplace\(...\)",
    ),
    "a name for the level of a domain": (
        lambda: DOMAIN.keys("Day"),
        "`level` must be a whole number from 1 to 2, not 'Day'",
        "2 is for the leaves",
    ),
}


@each("call, fact, hint", [pytest.param(*case, id=name) for name, case in MISTAKES.items()])
def test_mistakes_are_met_with_a_hint(call, fact, hint):
    with pytest.raises(DPTreeError, match=fact) as caught:
        call()
    assert isinstance(caught.value, ArgumentError)
    assert re.search(hint.replace("?", r"\?"), caught.value.hint)
    assert str(caught.value).endswith(f"\nHint: {caught.value.hint}")


ACCEPTED = {
    "by": lambda **options: counts("Day", **options),
    "a list": lambda **options: counts("Day", ["Tue", "Mon"], **options),
    "a tuple": lambda **options: counts(["Day"], ("Mon", "Tue"), **options),
    "a set": lambda **options: counts("Day", {"Mon", "Tue"}, **options),
    "an array": lambda **options: counts("Day", np.array(["Mon", "Tue"]), **options),
    "what unique returns": lambda **options: counts("Day", FRAME["Day"].unique(), **options),
    "a series": lambda **options: counts("Day", pd.Series(["Mon", "Tue"]), **options),
    "a named series": lambda **options: counts("Day", DAYS["Day"], **options),
    "a filtered series": lambda **options: counts("Day", FRAME["Day"].drop_duplicates(), **options),
    "an index": lambda **options: counts("Day", pd.Index(["Mon", "Tue"]), **options),
    "a named index": lambda **options: counts("Day", pd.Index(["Mon", "Tue"], name="Day"), **options),
    "a domain": lambda **options: counts("Day", dpt.Domain.from_frame(["Mon", "Tue"], by="Day"), **options),
    "a derived domain": lambda **options: counts("Day", dpt.derived_domain("Day", ["Mon", "Tue"]), **options),
    "observed": lambda **options: counts("Day", "observed", **options),
}


@each("release", [pytest.param(release, id=name) for name, release in ACCEPTED.items()])
def test_a_single_key_needs_no_list_and_no_frame(release):
    expected = counts(["Day"], DAYS, rng=np.random.default_rng(0))
    found = release(rng=np.random.default_rng(0))
    pd.testing.assert_frame_equal(found, expected)


def test_a_range_of_whole_numbers():
    found = counts("person", range(N // 2), rng=np.random.default_rng(0))
    frame = pd.DataFrame({"person": range(N // 2)})
    pd.testing.assert_frame_equal(found, counts(["person"], frame, rng=np.random.default_rng(0)))
    assert found["person"].dtype == "Int64"


def test_series_of_other_libraries():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    days = ["Mon", "Tue"]
    for series in [pl.Series(days), pl.Series("Day", days), pa.chunked_array([days])]:
        assert counts("Day", series)["Day"].dropna().tolist() == days
    with pytest.raises(ColumnsError, match="lacks the columns: 'Day'"):
        counts("Day", pl.Series("Region", days))


@each("name", [7, 1.5, True, pd.Timestamp("2024-01-01"), "a b"])
def test_any_scalar_names_a_key(name):
    frame = pd.DataFrame({name: ["x", "y"]})
    assert frame.dp.tree_counts(name, epsilon=1.0, domain=["x", "y"]).columns[1] == name


def test_texts_that_are_numbers_are_added_up_by_numbers():
    frame = FRAME.assign(cost=FRAME["cost"].astype(str))
    table = frame.dp.tree_sums("person", columns="cost", bounds=(0, 100), epsilon=20.0, domain=range(N // 2))
    assert abs(table["cost"][0] - FRAME["cost"].sum()) < 1000


def test_a_single_name_everywhere():
    by_day = {"by": "Day", "domain": DAYS, "epsilon": 1.0}
    assert sums().columns.tolist() == ["level", "Day", "cost", "cost_std_error"]
    assert sums(["cost", "person"]).columns[2] == "cost"
    assert (
        FRAME.dp.tree_means("Day", columns="cost", bounds=(0, 9), epsilon=1.0, domain=DAYS).columns[1]
        == "Day"
    )
    assert FRAME.dp.plan("Day", domain=DAYS, epsilon=1.0).level_names == ("total", "Day")
    assert FRAME.dp.quantiles("cost", 0.5, bounds=(0, 100), **by_day).columns[1] == "Day"
    assert dpt.Domain.observed(FRAME, by="Day").by == ("Day",)
    assert dpt.Domain.from_categories(DAYS.astype("category"), by="Day").by == ("Day",)
    assert dpt.mapping(DAYS, by="Day").names == ("Day",)
    assert list(ARRAY.dp.tree_counts("state", epsilon=1.0).children) == ["total", "state"]
    assert ARRAY.dp.plan("state", epsilon=1.0).level_names == ("total", "state")
    assert list(DATASET.dp.tree_counts("state", epsilon=1.0).children) == ["total", "state"]
    assert dpt.calendar("date", "year", start="2024-01-01", end="2024-12-31").names == ("date_year",)


def test_a_call_error_is_a_type_error():
    with pytest.raises(TypeError) as caught:
        counts(eplison=1)
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument == "eplison"


@each("asked", ["person", "Bobb", "Ann", "anna smith jr"])
def test_a_first_record_that_was_taken_for_the_header_is_never_quoted(asked):
    """As of a file without a header, or of a transposed frame."""
    frame = pd.DataFrame(columns=["person0", "Bob", "Anna", "Anna Smith"])
    with pytest.raises(dpt.ColumnsError) as caught:
        dpt.tree_counts(frame, [asked], epsilon=1.0, domain="observed")
    assert not any(name in str(caught.value).replace(f"'{asked}'", "") for name in frame.columns)


@pytest.mark.parametrize("module", [dpt, dpt.arrays, dpt.arrays.several, dpt.datasets, dpt.theory])
def test_completion_shows_public_names_alone(module):
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(
    "holder", [COUNTS, COUNTS["count"], ARRAY, DATASET], ids=lambda each: type(each).__name__
)
def test_accessors_show_their_verbs_alone(holder):
    shown = [name for name in dir(holder.dp) if not name.startswith("_")]
    assert shown
    assert all(callable(getattr(holder.dp, name)) for name in shown)
