"""Released tables, and what a reader sees of them."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt

LOSSES = {"laplace": {"epsilon": 0.7}, "gaussian": {"rho": 0.05}}

PLACES = pd.DataFrame(
    {
        "state": ["CA", "CA", "CA", "DC", "WA", "WA"],
        "county": ["Alameda", "Fresno", "Marin", None, "King", "Pierce"],
        "empty": [False, False, True, False, False, False],
    }
)
KEYS = ["state", "county"]


def stated_in(table):
    """What a table states of how it was made, without the digest of its values."""
    provenance = table.attrs["dp"]
    provenance = json.loads(provenance) if isinstance(provenance, str) else provenance
    return {name: each for name, each in provenance.items() if name != "table_digest"}


def us(**options):
    return dpt.Domain.from_frame(PLACES, by=KEYS, **options)


def people(*counts):
    return PLACES.loc[np.repeat(PLACES.index, counts), KEYS]


KNOWN = {"total": 10, "county": pd.Series([0], pd.MultiIndex.from_tuples([("CA", "Marin")], names=KEYS))}
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "</script><img src=x onerror=\"document.title='taken'\">",
    "&amp; 100 % {0} {x} %{label} $\\frac{1}{2}$",
    "مرحبا‏",
    "Žižkov 東京 🏥",
    "None",
    "nan",
    "<NA>",
    "",
    "two\nlines",
    "\"quoted\" 'twice'",
]


def paths(table, keys):
    rows = table[keys].astype(object).itertuples(index=False, name=None)
    depths = [["total", *keys].index(level) for level in table["level"]]
    return [
        tuple("(other)" if pd.isna(key) else str(key) for key in row[:depth])
        for row, depth in zip(rows, depths, strict=True)
    ]


def text_of(page):
    """Parse a page as a browser does; give its elements and its text."""
    html5lib = pytest.importorskip("html5lib")
    tree = html5lib.HTMLParser(namespaceHTMLElements=False).parse(page)
    return tree, "".join(tree.itertext())


def rows_of(tree):
    """The texts in the rows of the levels, without the heads of groups."""
    tables = [table for table in tree.find("body").iter("table") if table.get("class") != "key"]
    rows = [row for table in tables for row in table.iterfind("tbody/tr/th[@scope='row']/..")]
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def attrs_of(table):
    """The attributes of a released table or tree, without the digest of its values."""
    return {**table.attrs, "dp": stated_in(table)}
