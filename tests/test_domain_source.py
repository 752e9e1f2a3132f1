"""Where the keys of a release came from, as everything that is made of it says."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import SOURCES, fingerprint
from pandas_dptree.output.report import statement
from tests.helpers_verbs import REGIONS, SPENDING, VALUES, VISITS, called, tables

FACTOR = dpt.Multiplicative(alpha=0.25)
LOSS = {"epsilon": 1.0, "delta": 1e-6}
FRAME = VISITS.assign(region=pd.Categorical(VISITS["region"], categories=REGIONS["region"].sort_values()))
YEARS = dpt.calendar("date", ["year"], start="2024-01-01", end="2025-12-31")
DOMAINS = {
    "given": dpt.Domain.from_frame(REGIONS, by=["region"]),
    "categories": dpt.Domain.from_categories(FRAME, by=["region"]),
    "observed": dpt.Domain.observed(FRAME, by=["region"]),
}
SAID = {"given": REGIONS, "categories": "categories", "observed": "observed"}
WORDS = {
    "given": "gave the list",
    "categories": "categories of the keys",
    "observed": "stand in the records",
}


def source_in(table):
    return table.attrs["dp"]["domain_source"]


# Domains


@pytest.mark.parametrize("source", SOURCES)
def test_a_domain_knows_where_its_keys_came_from(source):
    domain = DOMAINS[source]
    assert domain.source == source
    assert dpt.derived_domain(["region"], domain) is domain
    assert dpt.derived_domain(["region", YEARS], domain).source == source
    assert dpt.derived_domain([YEARS, "region"], domain).source == source
    assert fingerprint(domain) == fingerprint(DOMAINS["given"])  # the same list is the same domain


def test_what_follows_from_a_description_is_given():
    assert dpt.derived_domain([YEARS]).source == "given"
    assert dpt.derived_domain([YEARS, dpt.cut("cost", [0, 10, 20])]).source == "given"
    assert dpt.Domain.from_tree(dpt.Tree.from_branching([2])).source == "given"


# Tables


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SPENDING)
def test_every_verb_records_it(name, source):
    of = {"frame": FRAME} if not name.startswith("frame.dp.") else {}
    method = getattr(FRAME.dp, name.removeprefix("frame.dp."))
    for domain in (SAID[source], DOMAINS[source]):
        if of:
            options = {"by": ["region"], "domain": domain}
            found = tables(name, **of, **options)
        else:
            keep = {each: VALUES[each] for each in ("columns", "column", "ranges", "q", "bounds", "bins")}
            parameters = __import__("inspect").signature(method).parameters
            found = [method(**{k: v for k, v in keep.items() if k in parameters}, by=["region"], domain=domain, epsilon=1.0)]
        for table in found:
            assert source_in(table) == source
