"""Simulated examples: visits to clinics, and taxi trips on a map. Nobody in them exists, nor does any place.

They are computed when they are asked for, from seeded random numbers, so that documentation and tests need
no file and no network. They have what makes real tables awkward: units of very unequal sizes, units that
nobody visited, equal names in different places, paths that end early, and people with more than one row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["clinic_visits", "clinics", "taxi_trips"]


def __dir__() -> list[str]:
    """List the public names alone, for completion."""
    return __all__


KEYS = ["region", "district", "clinic"]

# How many districts each region has, and the size of the region's population relative to the others.
REGIONS = {
    "Aldmark": (12, 30.0),
    "Brenvale": (9, 14.0),
    "Corrow": (7, 7.0),
    "Dunmoor": (5, 3.0),
    "Estholm": (3, 1.0),
}
TELEPHONE = "By telephone"  # a region without districts: its path ends at once
TELEPHONE_SHARE = 0.06
ISLANDS = "Outer Islands"  # a district of Estholm without clinics: a doctor travels there
NAME_BEGINNINGS = ["Alder", "Bram", "Cinder", "Dove", "Elver", "Farrow", "Gorse", "Heron", "Iver"]
NAME_ENDINGS = ["by", "combe", "holt", "mere"]
STREETS = ["Bridge", "Castle", "Chapel", "Garden", "High", "Mill", "Park", "Quay", "School", "Station"]
STREET_KINDS = ["Street", "Road", "Lane", "Square"]

FIRST_DAY = np.datetime64("2024-01-01", "D")
N_DAYS = 731  # 2024 and 2025
AT_HOME = 0.85  # the share of visits that people make to the clinic they usually go to

CITY_KM = 25.6  # how long each side of the map of the city is
# Its quarters: kilometres north and east of the south-western corner, radius, and share of the trips.
QUARTERS = [(12.5, 11.0, 1.6, 0.38), (15.5, 15.5, 3.5, 0.24), (7.5, 8.0, 2.8, 0.16), (18.5, 7.5, 2.2, 0.12)]
PARK = (13.8, 15.4, 9.2, 10.2)  # its southern, northern, western and eastern end
STATION, AIRPORT = (12.2, 12.0), (4.6, 20.5)


def clinics() -> pd.DataFrame:
    """List every clinic there is: the public keys of the simulated example.

    The list is the same on every call. It names clinics that nobody visited too, and two paths that end
    early: visits by telephone belong to no district, and one district has a travelling doctor and no
    clinic. Names of clinics repeat ("High Street"), so a clinic is identified by its whole path.

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
    >>> bool(places.duplicated().any())
    False
    """
    return _clinics_and_sizes()[0].copy()


def clinic_visits(n_people: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Simulate a table of visits to clinics, one row per visit. No person in it exists.

    Sizes are very unequal: the largest clinic has more than fifty times as many visits as the median one.
    About four people in ten have several rows, mostly at the same clinic.

    Parameters
    ----------
    n_people : int, default 20,000
        How many people there are. Each has at least one visit.
    seed : int, default 0
        Seed of the simulation. The same arguments give the same table.

    Returns
    -------
    pandas.DataFrame
        The visits in the order of their dates, with the columns

        - ``person`` (int64): who came, from 1 to `n_people`;
        - ``region``, ``district``, ``clinic`` (text): where, each path one of those in `clinics`;
        - ``date`` (datetime64): when, in 2024 or 2025;
        - ``age`` (int64): of the person, in years, from 0 to 99;
        - ``cost`` (float64): what the visit cost; missing for about one visit in a hundred.

    Raises
    ------
    ArgumentError
        If `n_people` is not a whole number of at least 0.

    See Also
    --------
    clinics : The public list of clinics.

    Notes
    -----
    **Privacy.** The table is simulated and protects nobody, since it is about nobody. In the examples it
    stands for a secret table, whose privacy unit is ``person``.

    Examples
    --------
    >>> from pandas_dptree import datasets
    >>> visits = datasets.clinic_visits(n_people=1000, seed=1)
    >>> list(visits.columns)
    ['person', 'region', 'district', 'clinic', 'date', 'age', 'cost']
    >>> visits["person"].nunique()
    1000
    >>> len(visits) > 1000
    True
    """
    if isinstance(n_people, bool) or not isinstance(n_people, (int, np.integer)) or n_people < 0:
        raise ArgumentError(
            "n_people",
            f"must be a whole number >= 0, not {quote(n_people)}.",
            hint="for example clinic_visits(n_people=20_000).",
        )
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
    visits["date"] = (FIRST_DAY + day[order]).astype("datetime64[ns]")
    visits["age"] = ages[person[order]]
    visits["cost"] = cost[order]
    return visits


def taxi_trips(n_trips: int = 500_000, n_cells: int = 256, seed: int = 0) -> xr.DataArray:
    """Simulate a map of where taxi trips begin in a city. There is no such city, and no trip was made.

    Most trips begin downtown, along the streets, at the station and at the airport, where a cell has hundreds
    or more. Nobody is picked up in the river, in the park or in the sea, and most other cells have a few.

    Parameters
    ----------
    n_trips : int, default 500,000
        How many trips there are.
    n_cells : int, default 256
        Into how many cells each side of the map is divided, at least 2. By default each is 100 metres wide.
    seed : int, default 0
        Seed of the simulation. The same arguments give the same map.

    Returns
    -------
    xarray.DataArray of int64, shape (n_cells, n_cells)
        How many trips begin in each cell. The coordinates ``y`` and ``x`` are the centres of the cells, in
        kilometres north and east.

    Raises
    ------
    ArgumentError
        If `n_trips` is not a whole number of at least 0, or `n_cells` not one of at least 2.

    Notes
    -----
    **Privacy.** The map is simulated and protects nobody. In the examples it stands for a secret one, in
    which each record is one trip.

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
                hint="for example taxi_trips().",
            )
    centres = (np.arange(n_cells) + 0.5) * CITY_KM / n_cells
    density = _pickups(centres[:, None], centres[None, :])
    trips = _seeded(seed).multinomial(n_trips, (density / density.sum()).ravel())
    axis = {"units": "km"}
    return xr.DataArray(
        trips.reshape(n_cells, n_cells),
        coords={"y": ("y", centres, axis), "x": ("x", centres, axis)},
        dims=["y", "x"],
        name="trips",
    )


def _pickups(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Tell how many trips begin at each place, relative to others."""
    density = np.full(np.broadcast_shapes(y.shape, x.shape), 0.002)
    for north, east, radius, share in QUARTERS:
        density += share / radius**2 * np.exp(-((y - north) ** 2 + (x - east) ** 2) / (2 * radius**2))
    # The streets are not laid out from south to north, and every fourth is a wide one.
    streets = np.full(density.shape, 0.15)
    for way in (0.94 * x + 0.34 * y, 0.94 * y - 0.34 * x):
        for pitch, weight in ((0.6, 1.0), (2.4, 3.0)):
            streets += weight * (np.abs(way - pitch * np.round(way / pitch)) < 0.08)
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
    """Make the list of clinics, and the share of all visits that each expects."""
    # A seed of its own: the public list may not depend on the seed of the visits.
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
