"""What is made of released tables of distinct units, whose numbers do not add up."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.accessors.frames import DataFrameAccessor
from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.derived.estimates import Estimates
from tests.helpers_cases import each
from tests.helpers_unit_tables import BY, PLACES, VISITS, people, visitors

DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
REFUSED = {
    "proportions": lambda table: table.dp.proportions(),
    "combine": lambda table: table.dp.combine({"west": [("Aldmark",), ("Corrow",)]}),
    "plot.icicle": lambda table: table.dp.plot.icicle(),
}
WORK = {
    "change_from": lambda table: table.dp.change_from(people(keep=["linear"])),
    "domain": lambda table: table.dp.domain(),
    "level": lambda table: table.dp.level("region"),
    "plot.levels": lambda table: table.dp.plot.levels(),
    "plot.heatmap": lambda table: table.dp.plot.heatmap(),
    "plot.changes": lambda table: table.dp.plot.changes(people(keep=["linear"])),
    "reliability": lambda table: table.dp.reliability(),
    "to_file": lambda table: None,  # below
    "to_html": lambda table: table.dp.to_html(),
    "top": lambda table: table.dp.top(3),
}


def test_every_function_of_released_tables_works_or_is_refused():
    from pandas_dptree.accessors.frames import _OF_RELEASED_TABLES

    pictures = {name for name in dir(people().dp.plot) if not name.startswith("_")}
    assert {name.split(".")[0] for name in (*REFUSED, *WORK)} == {*_OF_RELEASED_TABLES}
    assert {name.split(".")[1] for name in (*REFUSED, *WORK) if "." in name} == pictures
    assert all(hasattr(DataFrameAccessor, name) for name in _OF_RELEASED_TABLES)


@each("name", REFUSED)
def test_what_needs_numbers_that_add_up_is_refused(name):
    for keep in ([], ["linear"]):
        with pytest.raises(ArgumentError, match="do not add up") as caught:
            REFUSED[name](people(keep=keep))
        assert "Hint: " in str(caught.value)


@each("name", WORK)
def test_all_else_works(name):
    pytest.importorskip("matplotlib")
    WORK[name](people(keep=["linear"]))


def test_columns_of_records_beside_them_still_add_up():
    table = visitors(keep=["linear"])
    assert table.dp.proportions(column="visits")["proportion"].notna().any()
    assert len(table.dp.combine({"west": [("Aldmark",)]}, column="visits")) == 1
    for name in ("proportions", "combine"):
        with pytest.raises(ArgumentError, match="do not add up"):
            arguments = {} if name == "proportions" else {"areas": {"west": [("Aldmark",)]}}
            getattr(table.dp, name)(column="visitors", **arguments)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_keep_all_columns_and_that_they_do_not_add_up(tmp_path, ending):
    pytest.importorskip("pyarrow")
    table = people(keep=["measurements", "linear"], confidence=0.9)
    path = tmp_path / f"people.{ending}"
    table.dp.to_file(path)
    again = dpt.read_file(path)
    pd.testing.assert_frame_equal(again, table)
    with pytest.raises(ArgumentError, match="do not add up"):
        again.dp.proportions()


def test_pages_say_what_such_numbers_are():
    page = people().dp.to_html()
    assert "Counts distinct person: each once in every node, in at most 3 of the level district " in page
    assert "each person, with all rows" in page and "At most" not in page
    both = visitors().dp.to_html()
    assert "“visitors” counts distinct person" in both and "Uses at most 4 rows of each person" in both


def test_errors_follow_from_the_noise_that_a_table_states():
    """Also where counts of people are changed by hand: their errors are compared with the noise."""
    for options in ({}, {"known": {"total": 3_000}}, {"consistency": "none"}, {"max_nodes": {"district": 1}}):
        table = people(keep=["linear"], **options)
        assert len(table.dp.top(2)) == 2
        table["std_error"] *= 0.9
        with pytest.raises(ArgumentError, match="changed"):
            table.dp.top(2)


@each("column", ["count", "visitors"])
def test_the_moments_of_errors_are_those_of_the_plan(column):
    """Also the fourth cumulants, to which excesses add theirs."""
    table = people(keep=["linear"]) if column == "count" else visitors(keep=["linear"], rho=None, epsilon=1.0)
    plan = dpt.Plan.from_dict(json.loads(table.attrs["dp_plan"]), DOMAIN)
    plan = plan if column == "count" else plan.plans[column]
    fourth = [np.broadcast_to(level, size) for level, size in
              zip(plan.error_cumulants, plan.tree.level_sizes, strict=True)]  # fmt: skip
    found = Estimates.of(table, column)
    listed = np.concatenate([level[plan.tree.listed(at)] for at, level in enumerate(fourth)])
    np.testing.assert_allclose(found.moments[1], listed, rtol=1e-9)


def test_visits_of_each_visitor_are_means():
    """Pages say so, and their numbers are compared with the errors of the table."""
    table = visitors()
    assert "Visits each: 1." in (page := table.dp.to_html(columns="visits_each")) and " over all, by" in page
    assert "means of all rows can differ" in page and "first-order approximation" in page
    assert table.dp.top(3, column="visits_each")["rank"].tolist() == [1, 2, 3]
    change = visitors().dp.change_from(table, column="visits_each")
    assert change["change"].notna().sum() > 20
    with pytest.raises(ArgumentError, match="holds means"):
        table.dp.proportions(column="visits_each")


def test_counts_of_rows_are_not_compared_with_counts_of_units():
    rows = VISITS.dp.tree_counts(BY, domain=PLACES, epsilon=1.0, consistency="linear")
    with pytest.raises(
        ArgumentError, match="counts of distinct units in one and 'count' counts in the other"
    ):
        people(consistency="linear").dp.change_from(rows)


TAKES_TABLES = {"alpha_rmse", "max_alpha_rmse", "smoothed_relative_error", "accuracy", "is_accurate",
                "l2_error", "linf_error"}  # fmt: skip


def test_every_public_function_of_released_tables_is_known():
    """All but the methods of tables. A `mapping` has a table of public keys."""

    def takes_tables(module):
        functions = {name: getattr(module, name) for name in module.__all__}
        functions = {name: each for name, each in functions.items() if inspect.isroutine(each)}
        return {name for name, each in functions.items() if TABLES & {*inspect.signature(each).parameters}}

    assert takes_tables(dpt) == {"mapping", "page", "to_file"}
    assert takes_tables(dpt.theory) == TAKES_TABLES


TABLES = {"released", "table", "tables"}


@each("name", TAKES_TABLES)
def test_errors_are_measured_against_the_truth_of_each_node_alone(name):
    """Sums of the truth of groups would count whoever is in several of them several times."""
    table = people()
    more = {"smoothed_relative_error": (1.0,)}.get(name, ())
    measure = getattr(dpt.theory, name)
    districts = table[table["level"] == "district"]
    truth = districts.set_index(BY)["count"]
    with pytest.raises(ArgumentError, match=r"(?s)not the sum of those of groups.*Hint: count them in each"):
        measure(table, truth, *more)
    with pytest.raises(ArgumentError, match="not the sum"):
        measure(districts, pd.concat([truth, truth]), *more)
    by_level, by_row = (measure(table, given, *more) for given in (table, table["count"].to_numpy()))
    assert np.array_equal(by_level, by_row) if np.isscalar(by_row) else by_level.equals(by_row)
    measure(districts, truth, *more)
    if not more:  # of several releases, one may have lost what it states
        lost = table.copy()
        lost.attrs = {}
        with pytest.raises(ArgumentError, match="not the sum"):
            measure([lost, table], truth)


FORGED = [{"excess_noise_scale": "x"}, {"excess_noise_scale": {}}, {"excess_noise_scale": {"total": None}},
          {"max_nodes": 3}, {"max_nodes": {}}, {"max_nodes": {}, "excess_noise_scale": {}}]  # fmt: skip


@each("forged", FORGED)
def test_what_a_table_states_is_not_trusted(forged):
    table = people(keep=["linear"])
    table.attrs["dp"] = {**table.attrs["dp"], **forged}
    with pytest.raises(ArgumentError, match=r"does not fit its levels|it was changed"):
        table.dp.top(2)
    table.dp.to_html()
    table.dp.plot.levels()


def test_workbooks_say_that_they_do_not_add_up_and_have_no_proportions(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    people(keep=["linear"]).dp.to_file(tmp_path / "people.xlsx")
    book = openpyxl.load_workbook(tmp_path / "people.xlsx")
    told = [row[0].value for row in book["Read me"].iter_rows() if row[0].value]
    assert any("So numbers do not add up" in line for line in told)
    heads = [cell.value for cell in next(book.worksheets[1].iter_rows())]
    assert "count" in heads and "class" in heads and not any("proportion" in str(head) for head in heads)
