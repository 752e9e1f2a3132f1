"""What is made of released tables of distinct units, whose numbers do not add up."""

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.accessors.frames import DataFrameAccessor
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each

BY = ["region", "district"]
PLACES = dpt.datasets.clinics()[BY].drop_duplicates()
VISITS = dpt.datasets.clinic_visits(3_000)
COLUMNS = {"visits": "count", "visitors": "units", "visits_each": "count_per_unit"}


def people(**options):
    return VISITS.dp.tree_units(
        BY, **{"domain": PLACES, "epsilon": 1.0, "privacy_unit": "person", "max_nodes": 3, **options}
    )


def visitors(**options):
    unit = {"privacy_unit": "person", "max_nodes": 3, "max_contributions": 4}
    return VISITS.dp.tree_agg(BY, COLUMNS, **{"domain": PLACES, "rho": 0.1, **unit, **options})


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
    with pytest.raises(ArgumentError, match="do not add up") as caught:
        REFUSED[name](people(keep=["linear"]))
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
    assert "Counts distinct person: each once in every node, in at most 3 of district and 3 of region" in page
    assert "each person, with all rows" in page and "At most" not in page
    both = visitors().dp.to_html()
    assert "“visitors” counts distinct person" in both and "Counts at most 4 rows of each person" in both


def test_errors_follow_from_the_noise_that_a_table_states():
    """Also where counts of people are changed by hand: their errors are compared with the noise."""
    for options in ({}, {"known": {"total": 3_000}}, {"consistency": "none"}, {"max_nodes": {"district": 1}}):
        table = people(keep=["linear"], **options)
        assert len(table.dp.top(2)) == 2
        table["std_error"] *= 0.9
        with pytest.raises(ArgumentError, match="changed"):
            table.dp.top(2)
