"""Simulated examples, computed from seeds: visits to clinics and to web pages, and taxi trips.

All are fictitious, with the difficulties of real tables: units of very unequal sizes or without visits, equal
names in different places, paths that end early, and people with more than one row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["clinic_visits", "clinics", "taxi_trips", "web_visits"]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__


KEYS = ["region", "district", "clinic"]

# For each region, the number of districts and the relative size of its population.
REGIONS = {
    "Aldmark": (12, 30.0),
    "Brenvale": (9, 14.0),
    "Corrow": (7, 7.0),
    "Dunmoor": (5, 3.0),
    "Estholm": (3, 1.0),
}
TELEPHONE = "By telephone"  # a region without districts: its path ends there
TELEPHONE_SHARE = 0.06
ISLANDS = "Outer Islands"  # a district of Estholm without clinics: a doctor travels there
NAME_BEGINNINGS = ["Alder", "Bram", "Cinder", "Dove", "Elver", "Farrow", "Gorse", "Heron", "Iver"]
NAME_ENDINGS = ["by", "combe", "holt", "mere"]
STREETS = ["Bridge", "Castle", "Chapel", "Garden", "High", "Mill", "Park", "Quay", "School", "Station"]
STREET_KINDS = ["Street", "Road", "Lane", "Square"]

FIRST_DAY = np.datetime64("2024-01-01", "D")
N_DAYS = 731  # 2024 and 2025
AT_HOME = 0.85  # share of visits to a person's usual clinic

SITES = np.array(["www", "shop", "docs"], dtype=object)
FIRST_WEEK = np.datetime64("2025-03-31")

CITY_KM = 25.6  # length of each side of the map of the city
# Its quarters: kilometres north and east of the south-western corner, radius, and share of the trips.
QUARTERS = [(12.5, 11.0, 1.6, 0.38), (15.5, 15.5, 3.5, 0.24), (7.5, 8.0, 2.8, 0.16), (18.5, 7.5, 2.2, 0.12)]
PARK = (13.8, 15.4, 9.2, 10.2)  # southern, northern, western and eastern end
STATION, AIRPORT = (12.2, 12.0), (4.6, 20.5)


def clinics() -> pd.DataFrame:
    """List all clinics: the public keys of the simulated example.

    The list is the same on every call. It includes clinics without visits, and two paths that end early:
    visits by telephone belong to no district, and one district has a travelling doctor and no clinic. Names
    of clinics repeat ("High Street"), so a clinic is identified by its whole path.

    Returns
    -------
    pandas.DataFrame
        One row per leaf path, with the columns ``region``, ``district`` and ``clinic``, all text; keys
        are missing below the level where a path ends.

    See Also
    --------
    clinic_visits : The simulated visits.

    Notes
    -----
    **Privacy.** The list does not depend on any visit, so it may be used as a public domain.

    Examples
    --------
    >>> from pandas_dptree import datasets
    >>> places = datasets.clinics()
    >>> list(places.columns)
    ['region', 'district', 'clinic']
    >>> int(places["clinic"].isna().sum())
    2
    """
    return _clinics_and_sizes()[0].copy()


def clinic_visits(n_people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Simulate a table of visits to clinics, one row per visit. All people are fictitious.

    Sizes are very unequal: the largest clinic has more than fifty times as many visits as the median one.
    About four people in ten have several rows, mostly at the same clinic.

    Parameters
    ----------
    n_people : int, default 20,000
        Number of people. Each has at least one visit.
    seed : int, default 0
        Seed of the simulation. The same arguments give the same table.

    Returns
    -------
    pandas.DataFrame
        The visits in the order of their dates, with the columns

        - ``person`` (int64): the patient, from 1 to `n_people`;
        - ``region``, ``district``, ``clinic`` (text): the place, each path one of those in `clinics`;
        - ``date`` (datetime64): the date, in 2024 or 2025;
        - ``age`` (int64): of the person, in years, from 0 to 99;
        - ``cost`` (float64): the cost of the visit; missing for about one visit in a hundred.

    Raises
    ------
    ArgumentError
        If `n_people` is not a whole number of at least 0.

    See Also
    --------
    clinics : The public list of clinics.

    Notes
    -----
    **Privacy.** The table is simulated and contains nobody's data. In the examples it represents a secret
    table, whose privacy unit is ``person``.

    Examples
    --------
    >>> from pandas_dptree import datasets
    >>> visits = datasets.clinic_visits(n_people=1000, seed=1)
    >>> list(visits.columns)
    ['person', 'region', 'district', 'clinic', 'date', 'age', 'cost']
    >>> visits["person"].nunique()
    1000
    """
    _check_number("n_people", n_people, "clinic_visits(n_people=20_000)")
    rng = _seeded(seed)
    places, sizes = _clinics_and_sizes()

    ages = np.minimum(100 * rng.beta(1.3, 1.7, n_people), 99).astype(np.int64)
    # Most people come once; the negative binomial's long tail comes often.
    n_visits = 1 + rng.negative_binomial(0.5, 0.35, n_people)
    person = np.repeat(np.arange(n_people, dtype=np.int64), n_visits)
    usual = rng.choice(len(places), n_people, p=sizes)[person]
    elsewhere = rng.choice(len(places), len(person), p=sizes)
    place = np.where(rng.random(len(person)) < AT_HOME, usual, elsewhere)
    day = rng.integers(N_DAYS, size=len(person))
    cost = np.round(rng.lognormal(4.0, 0.9, len(person)), 2)
    cost[rng.random(len(person)) < 0.01] = np.nan

    order = np.lexsort((person, day))
    visits = places.take(place[order]).reset_index(drop=True)
    visits.insert(0, "person", person[order] + 1)
    visits["date"] = (FIRST_DAY + day[order].astype("timedelta64[D]")).astype("datetime64[ns]")
    visits["age"] = ages[person[order]]
    visits["cost"] = cost[order]
    return visits


def web_visits(n_visitors: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Simulate the logs of three web sites, one row per page that was opened. All visitors are fictitious.

    A few pages have most of the visits. Many have one visitor alone: drafts, and pages of accounts, whose
    names should not be published.

    Parameters
    ----------
    n_visitors : int, default 20,000
        Number of visitors. Each opens at least one page, and one in a hundred opens more than forty.
    seed : int, default 0
        Seed of the simulation. The same arguments give the same table.

    Returns
    -------
    pandas.DataFrame
        The visits in the order of their times, with the columns

        - ``visitor`` (int64): who opened the page, from 1 to `n_visitors`;
        - ``time`` (datetime64, UTC): in the first two weeks of April 2025;
        - ``site`` (text): www, shop or docs;
        - ``path`` (text): the page, such as ``/guide/12``.

    Raises
    ------
    ArgumentError
        If `n_visitors` is not a whole number of at least 0.

    Notes
    -----
    **Privacy.** The table is simulated and contains nobody's data. In the examples it represents a secret
    table, whose privacy unit is ``visitor`` and whose key ``path`` is private.

    Examples
    --------
    >>> from pandas_dptree import datasets
    >>> visits = datasets.web_visits(n_visitors=1000, seed=1)
    >>> visits.columns.tolist(), visits["site"].nunique()
    (['visitor', 'time', 'site', 'path'], 3)
    """
    _check_number("n_visitors", n_visitors, "web_visits(n_visitors=20_000)")
    rng = _seeded(seed)
    n_pages = 1 + rng.negative_binomial(0.6, 0.08, n_visitors)
    visitor = np.repeat(np.arange(n_visitors, dtype=np.int64), n_pages)
    n = len(visitor)
    site = np.where(rng.random(n) < 0.6, rng.integers(3, size=n_visitors)[visitor], 0)
    page = 1 + (rng.zipf(1.6, n) - 1) % 400  # few pages have most of the visits
    section = np.array(["articles", "products", "guide"])[site]
    path = np.char.add(np.char.add(np.char.add("/", section), "/"), page.astype(str)).astype(object)
    own = rng.random(n) < 0.02
    path[own] = [f"/account/{each}" for each in (visitor[own] + 1).tolist()]
    day = rng.choice(14, n, p=np.tile([5, 5, 5, 5, 4, 2, 2], 2) / 56)
    second = (rng.normal(15 * 3600, 4 * 3600, n) % 86_400).astype(np.int64)
    time = FIRST_WEEK.astype("M8[s]") + day * 86_400 + second
    visits = pd.DataFrame(
        {"visitor": visitor + 1, "time": time.astype("M8[ns]"), "site": SITES[site], "path": path}
    ).astype({"site": str, "path": str})
    visits["time"] = visits["time"].dt.tz_localize("UTC")
    return visits.sort_values(["time", "visitor"], kind="stable", ignore_index=True)


def taxi_trips(n_trips: int = 500_000, n_cells: int = 256, seed: int = 0) -> xr.DataArray:
    """Simulate a map of the starting points of taxi trips in a fictitious city.

    Most trips begin downtown, along the streets, at the station and at the airport, where a cell has hundreds
    or more. No trip begins in the river, in the park or in the sea, and most other cells have a few.

    Parameters
    ----------
    n_trips : int, default 500,000
        Number of trips.
    n_cells : int, default 256
        Number of cells along each side of the map, at least 2. By default each is 100 metres wide.
    seed : int, default 0
        Seed of the simulation. The same arguments give the same map.

    Returns
    -------
    xarray.DataArray of int64, shape (n_cells, n_cells)
        Number of trips that begin in each cell. The coordinates ``y`` and ``x`` are the centres of the cells,
        in kilometres north and east.

    Raises
    ------
    ArgumentError
        If `n_trips` is not a whole number of at least 0, or `n_cells` not one of at least 2.

    Notes
    -----
    **Privacy.** The map is simulated and contains nobody's data. In the examples it represents a secret one,
    in which each record is one trip.

    Examples
    --------
    >>> from pandas_dptree import datasets
    >>> trips = datasets.taxi_trips()
    >>> dict(trips.sizes), int(trips.sum())
    ({'y': 256, 'x': 256}, 500000)
    """
    for name, value, least in (("n_trips", n_trips, 0), ("n_cells", n_cells, 2)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ArgumentError(
                name,
                f"must be a whole number >= {least}, not {quote(value)}.",
                hint="leave it out for the default.",
            )
    centres = (np.arange(n_cells) + 0.5) * CITY_KM / n_cells
    density = _pickup_density(centres[:, None], centres[None, :])
    trips = _seeded(seed).multinomial(n_trips, (density / density.sum()).ravel())
    axis = {"units": "km"}
    return xr.DataArray(
        trips.reshape(n_cells, n_cells),
        coords={"y": ("y", centres, axis), "x": ("x", centres, axis)},
        dims=["y", "x"],
        name="trips",
    )


def _pickup_density(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the density of starting points at each place."""
    density = np.full(np.broadcast_shapes(y.shape, x.shape), 0.002)
    for north, east, radius, share in QUARTERS:
        density += share / radius**2 * np.exp(-((y - north) ** 2 + (x - east) ** 2) / (2 * radius**2))
    # The street grid is rotated, and every fourth street is wide.
    streets = np.full(density.shape, 0.15)
    for across in (0.94 * x + 0.34 * y, 0.94 * y - 0.34 * x):
        for pitch, weight in ((0.6, 1.0), (2.4, 3.0)):
            streets += weight * (np.abs(across - pitch * np.round(across / pitch)) < 0.08)
    density *= streets
    river = 9.6 + 1.6 * np.sin(x / 4.2) + 0.12 * x
    coast = 21.0 + 0.9 * np.sin(y / 2.1) + 0.12 * y
    south, north, west, east = PARK
    park = (south < y) & (y < north) & (west < x) & (x < east)
    density[(np.abs(y - river) < 0.35) | (x > coast) | park] = 0.0
    for (at_y, at_x), weight in ((STATION, 4.0), (AIRPORT, 3.0)):
        density += weight * np.exp(-((y - at_y) ** 2 + (x - at_x) ** 2) / (2 * 0.12**2))
    return density


def _seeded(seed: int) -> np.random.Generator:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(
            "seed", f"must be a whole number >= 0, not {quote(seed)}.", hint="for example seed=0."
        )
    return np.random.default_rng(seed)


@cache
def _clinics_and_sizes() -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Return the list of clinics, and the expected share of all visits of each."""
    # A separate seed: the public list must not depend on the seed of the visits.
    rng = np.random.default_rng(20_250_101)
    towns = rng.permutation([begin + end for begin in NAME_BEGINNINGS for end in NAME_ENDINGS])
    streets = np.array([f"{name} {kind}" for name in STREETS for kind in STREET_KINDS])
    paths: list[tuple[Any, Any, Any]] = []
    weights: list[npt.NDArray[np.float64]] = []
    n_districts = 0
    for region, (districts, population) in REGIONS.items():
        for district in towns[n_districts : n_districts + districts]:
            names = rng.choice(streets, rng.integers(4, 31), replace=False)
            paths.extend((region, str(district), str(clinic)) for clinic in np.sort(names))
            sizes = rng.lognormal(0.0, 1.7, len(names))  # log-normal: a few large, most small
            sizes[rng.random(len(names)) < 0.03] = 0.0  # listed, but not open yet
            weights.append(population * sizes)
        n_districts += districts
    paths.append(("Estholm", ISLANDS, None))
    weights.append(np.array([5.0]))
    share = np.concatenate([*weights])
    share *= (1 - TELEPHONE_SHARE) / share.sum()
    paths.append((TELEPHONE, None, None))
    return pd.DataFrame(paths, columns=KEYS), np.append(share, TELEPHONE_SHARE)


def _check_number(argument: str, number: object, example: str) -> None:
    """Check the number of people of an example."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
        raise ArgumentError(
            argument, f"must be a whole number >= 0, not {quote(number)}.", hint=f"for example {example}."
        )
