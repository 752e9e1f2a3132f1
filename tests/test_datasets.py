"""The simulated example has the awkward features that the documentation and other tests count on."""

import numpy as np
import pandas as pd
import pytest

from pandas_dptree import datasets
from pandas_dptree.errors import ArgumentError

KEYS = ["region", "district", "clinic"]


@pytest.fixture(scope="module")
def visits():
    return datasets.clinic_visits()


def test_same_arguments_give_the_same_visits(visits):
    pd.testing.assert_frame_equal(visits, datasets.clinic_visits())


def test_another_seed_gives_other_visits():
    one, two = (datasets.clinic_visits(n_people=500, seed=seed) for seed in (1, 2))
    assert not one.equals(two)


def test_columns_have_their_kinds(visits):
    assert list(visits) == ["person", *KEYS, "date", "age", "cost"]
    assert visits["person"].dtype == np.int64
    assert visits["age"].dtype == np.int64
    assert visits["cost"].dtype == np.float64
    assert visits["date"].dtype.kind == "M"
    assert all(isinstance(key, str) for column in KEYS for key in visits[column].dropna())


def test_every_path_is_on_the_public_list(visits):
    used = visits[KEYS].drop_duplicates()
    assert len(used.merge(datasets.clinics(), on=KEYS)) == len(used)


def test_some_listed_clinics_have_no_visits(visits):
    assert len(visits[KEYS].drop_duplicates()) < len(datasets.clinics())


def test_the_largest_clinic_dwarfs_the_median(visits):
    sizes = visits.dropna(subset=KEYS).groupby(KEYS).size()
    assert sizes.max() >= 50 * sizes.median()


def test_regions_are_unequal(visits):
    sizes = visits.groupby("region").size()
    assert sizes.max() >= 5 * sizes.min()


def test_some_people_have_several_rows(visits):
    rows = visits["person"].value_counts()
    assert len(rows) == 20_000
    assert rows.min() == 1
    assert 0.2 < (rows > 1).mean() < 0.6
    assert rows.max() > 10


def test_a_person_has_one_age(visits):
    assert len(visits[["person", "age"]].drop_duplicates()) == 20_000
    assert visits["age"].between(0, 99).all()


def test_paths_that_end_early_are_listed_and_used(visits):
    for frame in (visits, datasets.clinics()):
        gone = frame[KEYS].isna()
        assert not gone["region"].any()
        assert (gone["district"] & gone["clinic"]).any()
        assert (~gone["district"] & gone["clinic"]).any()
        assert not (gone["district"] & ~gone["clinic"]).any()


def test_the_list_holds_each_path_once_and_no_leaf_above_another():
    places = datasets.clinics()
    assert not places.duplicated().any()
    ends_early = places[places["district"].isna()]["region"]
    assert not places[places["region"].isin(ends_early)]["district"].notna().any()
    assert (places.loc[places["clinic"].notna(), "clinic"].value_counts() > 1).any()


def test_the_list_cannot_be_spoilt_by_its_callers():
    places = datasets.clinics()
    places["region"] = "elsewhere"
    assert "elsewhere" not in datasets.clinics()["region"].tolist()


def test_dates_costs_and_order(visits):
    assert visits["date"].is_monotonic_increasing
    assert visits["date"].dt.year.isin([2024, 2025]).all()
    assert 0.005 < visits["cost"].isna().mean() < 0.02
    assert visits["cost"].min() > 0


def test_no_records_give_an_empty_table_of_the_same_kind(visits):
    empty = datasets.clinic_visits(n_people=0)
    assert len(empty) == 0
    pd.testing.assert_series_equal(empty.dtypes, visits.dtypes)


@pytest.mark.parametrize("n_people", [-1, 1.5, True, "many"])
def test_a_number_of_people_that_is_none_is_refused(n_people):
    with pytest.raises(ArgumentError, match="Hint: ") as caught:
        datasets.clinic_visits(n_people=n_people)
    assert caught.value.argument == "n_people"


def test_the_map_has_full_and_empty_places():
    trips = datasets.taxi_trips()
    assert trips.dims == ("y", "x") and trips.dtype == np.int64 and trips.sum() == 500_000
    assert trips.max() > 1000 and 0.3 < (trips == 0).mean() < 0.5
    assert trips.sel(x=slice(24.5, None)).sum() == 0  # the sea
    assert trips.sel(y=slice(13.9, 15.3), x=slice(9.3, 10.1)).sum() == 0  # the park
    assert trips.identical(datasets.taxi_trips()) and not trips.equals(datasets.taxi_trips(seed=1))


def test_the_map_can_be_finer():
    trips = datasets.taxi_trips(n_trips=1000, n_cells=500)
    assert trips.shape == (500, 500) and trips.sum() == 1000
    assert trips["y"][[0, -1]].values.tolist() == pytest.approx([0.0256, 25.5744])


@pytest.mark.parametrize(
    "mistake", [{"n_trips": -1}, {"n_trips": 1.5}, {"n_cells": 1}, {"n_cells": True}], ids=repr
)
def test_mistakes_about_the_map_are_named(mistake):
    with pytest.raises(ArgumentError) as error:
        datasets.taxi_trips(**mistake)
    assert error.value.argument == next(iter(mistake))


def test_web_visits_have_pages_of_few_and_of_many():
    visits = datasets.web_visits(n_visitors=5000)
    assert list(visits) == ["visitor", "time", "site", "path"] and str(visits["time"].dt.tz) == "UTC"
    assert visits["time"].is_monotonic_increasing and visits["visitor"].nunique() == 5000
    assert set(visits["site"]) == {"www", "shop", "docs"}
    by_page = visits.groupby(["site", "path"])["visitor"].nunique()
    assert by_page.max() > 1000 and (by_page == 1).sum() > 100
    pd.testing.assert_frame_equal(visits, datasets.web_visits(n_visitors=5000))
    assert not visits.equals(datasets.web_visits(n_visitors=5000, seed=1))
    empty = datasets.web_visits(n_visitors=0)
    pd.testing.assert_series_equal(empty.dtypes, visits.dtypes)
    with pytest.raises(ArgumentError, match="`n_visitors` must be a whole number"):
        datasets.web_visits(n_visitors=True)
