"""Where the keys of a release came from, as everything that is made of it says."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import SOURCES, fingerprint
from pandas_dptree.output.protection import statement
from pandas_dptree.verify import COMMON
from tests.helpers_cases import each
from tests.helpers_json import replaced, without
from tests.helpers_privacy import LOSS
from tests.helpers_verbs import REGIONS, SPENDING, VALUES, VISITS, tables

BY = ["region"]
FACTOR = dpt.Multiplicative(alpha=0.25)
YEARS = dpt.calendar("date", ["year"], start="2024-01-01", end="2025-12-31")
COSTS = dpt.cut("cost", [0, 10, 100])
DOMAINS = {
    "given": dpt.Domain.from_frame(REGIONS, by=BY),
    "released": VISITS.dp.tree_counts(BY, domain=REGIONS, **LOSS).dp.domain(),
    "categories": dpt.Domain.from_categories(VISITS, by=BY),
    "observed": dpt.Domain.observed(VISITS, by=BY),
}
STATED = {
    "given": REGIONS,
    "released": DOMAINS["released"],
    "categories": "categories",
    "observed": "observed",
}
HEADLINES = {
    "given": "",
    "released": "the keys are those of a released table",
    "categories": "the categories of the keys are declared public",
    "observed": "the keys that occur in the data are declared public",
}


def source_of(released):
    provenance = released.attrs["dp"]
    return (json.loads(provenance) if isinstance(provenance, str) else provenance)["domain_source"]


# Domains


@each("source", SOURCES)
def test_a_domain_knows_where_its_keys_came_from(source):
    domain = DOMAINS[source]
    assert domain.source == dpt.derived_domain(BY, domain).source == source
    assert dpt.derived_domain([*BY, YEARS], domain).source == source
    assert dpt.derived_domain([YEARS, *BY], domain).source == source
    assert fingerprint(domain) == fingerprint(DOMAINS["given"])  # the same list is the same domain


def test_what_follows_from_its_description_is_given():
    assert dpt.derived_domain([YEARS]).source == "given"
    assert dpt.derived_domain([YEARS, COSTS]).source == "given"
    assert dpt.Domain.from_tree(dpt.Tree.from_branching([2])).source == "given"


# Tables


@pytest.mark.parametrize(
    "domains", [STATED, pytest.param(DOMAINS, marks=pytest.mark.slow)], ids=["stated", "made"]
)
@pytest.mark.parametrize("name", SPENDING)
@each("source", SOURCES)
def test_every_verb_records_it(name, source, domains):
    for table in tables(name, by=BY, domain=domains[source]):
        assert source_of(table) == source


@each("source", SOURCES)
@pytest.mark.parametrize("options", [{"mechanism": FACTOR}, {"split": "uniform"}])
def test_every_mechanism_records_it(source, options):
    table = dpt.tree_counts(VISITS, BY, **LOSS, domain=STATED[source], **options)
    assert source_of(table) == source


def test_derived_levels_are_given_and_what_they_cross_says_more():
    assert source_of(dpt.tree_counts(VISITS, [YEARS, COSTS], epsilon=1.0)) == "given"
    for source, domain in STATED.items():
        for by in ([*BY, YEARS], [YEARS, *BY]):
            assert source_of(dpt.tree_counts(VISITS, by, epsilon=1.0, domain=domain)) == source
            assert (
                source_of(dpt.cdf(VISITS, "cost", bins=[0, 100, 500], by=by, epsilon=1.0, domain=domain))
                == source
            )


def test_without_keys_all_is_given():
    tree = dpt.Tree.from_branching([2, 3])
    for options in ({}, {"mechanism": FACTOR}):
        assert source_of(dpt.plan(tree, **LOSS, **options).release(np.full(6, 50))) == "given"
    assert source_of(dpt.cdf(VISITS, "cost", bins=[0, 100, 500], epsilon=1.0)) == "given"


@pytest.mark.parametrize("mechanism", ["truncated_laplace", FACTOR])
def test_an_implicit_tree_needs_no_keys(mechanism):
    table = dpt.tree_counts(VISITS, VALUES["tree"], **LOSS, mechanism=mechanism)
    assert source_of(table) is None
    assert "Which rows the table has: protected like its values." in statement(table.attrs["dp"])


# Arrays

ARRAY = xr.DataArray(
    np.full((3, 2, 4), 50), dims=["town", "month", "band"],
    coords={"town": ["a", "b", "c"], "month": [1, 2], "band": pd.IntervalIndex.from_breaks([0, 1, 2, 3, 4])},
)  # fmt: skip
EDGES = [0, 1, 2, 3, 4]


def test_labels_of_an_array_are_observed():
    towns = ARRAY.sum(["month", "band"])
    assert towns.dp.plan(["town"], epsilon=1.0).domain.source == "observed"
    assert source_of(towns.dp.tree_counts(["town"], epsilon=1.0)) == "observed"
    assert source_of(towns.dp.tree_sums(["town"], bounds=(0, 99), epsilon=1.0)) == "observed"
    both = xr.Dataset({"visits": towns, "deaths": towns})
    assert source_of(both.dp.tree_counts(["town"], epsilon=1.0)) == "observed"
    assert source_of(both.dp.tree_sums(["town"], bounds=(0, 99), epsilon=1.0)) == "observed"
    assert "the keys that occur in the data" in both.dp.plan(["town"], epsilon=1.0).headline


def test_an_array_of_a_given_domain_or_of_derived_levels_is_given():
    given = dpt.plan(dpt.Domain.from_frame(pd.DataFrame({"town": ["a", "b", "c"]}), by=["town"]), epsilon=1.0)
    months = [dpt.cut("month", [0, 1, 2])]
    assert source_of(ARRAY.sum(["month", "band"]).dp.release(given)) == "given"
    flat = ARRAY.sum(["town", "band"])
    assert source_of(flat.dp.tree_counts(months, epsilon=1.0)) == "given"
    assert source_of(xr.Dataset({"n": flat, "m": flat}).dp.tree_counts(months, epsilon=1.0)) == "given"
    # The answer has the labels of the other dimensions as well.
    assert source_of(ARRAY.dp.release(given)) == "observed"
    assert source_of(ARRAY.dp.tree_counts(months, epsilon=1.0)) == "observed"
    mixed = xr.Dataset({"n": flat, "m": ARRAY.sum("band")})
    assert source_of(mixed.dp.tree_counts(months, epsilon=1.0)) == "observed"


def test_bins_of_an_array_are_given_as_edges_or_stand_in_it():
    bands = ARRAY.sum(["town", "month"])
    for verb, more in (("cdf", ()), ("quantiles", (0.5,))):
        assert source_of(getattr(bands.dp, verb)("band", *more, epsilon=1.0)) == "observed"
        assert source_of(getattr(bands.dp, verb)("band", *more, epsilon=1.0, edges=EDGES)) == "given"
        assert source_of(getattr(ARRAY.dp, verb)("band", *more, epsilon=1.0, edges=EDGES)) == "observed"


# What is read


@each("source", SOURCES)
def test_plans_state_the_source_unless_the_keys_were_given(source):
    domain, words = DOMAINS[source], HEADLINES[source]
    for plan in (
        dpt.plan(domain, **LOSS),
        dpt.plan(domain, **LOSS, mechanism=FACTOR),
        dpt.plan_distribution("cost", bins=[0, 100, 500], domain=domain, epsilon=1.0),
    ):
        assert plan.headline in repr(plan)
        assert plan.headline.endswith(f"; {words}") if words else "the keys" not in repr(plan)
        if not isinstance(plan, dpt.DistributionPlan):
            assert words in plan._repr_html_() and ("the keys" in plan._repr_html_()) == bool(words)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("given", "The publisher provided the list of them"),
        (
            "released",
            "They are the keys of an earlier released table, whose privacy loss is not included",
        ),
        ("categories", "They are the categories of the keys, which the publisher declared public"),
        (
            "observed",
            "They are the keys in the records, which the publisher declared public",
        ),
    ],
)
def test_pages_state_the_source(source, words):
    for options in ({}, {"mechanism": FACTOR}):
        page = dpt.tree_counts(VISITS, BY, **LOSS, domain=STATED[source], **options).dp.to_html()
        assert f"Which rows the table has: not protected. {words}" in page
    means = dpt.tree_means(VISITS, BY, columns="cost", bounds=(0, 500), epsilon=1.0, domain=STATED[source])
    assert words in means.dp.to_html()


@each("odd", ["missing", None, "elsewhere", ["observed"], {}, 1])
def test_a_page_claims_nothing_that_the_table_does_not_state(odd):
    provenance = dict(dpt.tree_counts(VISITS, BY, epsilon=1.0, domain=REGIONS).attrs["dp"])
    provenance |= {"domain_source": odd}
    if odd == "missing":  # as in a table of the first version
        del provenance["domain_source"]
    statements = " ".join(statement(provenance))
    assert "not protected. The publisher declared the list of them public." in statements


# Plans as JSON

KINDS = {"Plan": {}, "MultiplicativePlan": {"mechanism": FACTOR}}


@pytest.mark.parametrize("kind", KINDS)
@each("planned", SOURCES)
@each("read", SOURCES)
def test_a_plan_that_is_read_has_the_source_of_its_keys_that_was_planned(kind, planned, read):
    plan = dpt.plan(DOMAINS[planned], **LOSS, **KINDS[kind])
    written = json.loads(json.dumps(plan.to_dict()))
    assert written["domain_source"] == planned
    if SOURCES.index(read) > SOURCES.index(planned):  # these keys are less certain to be public
        with pytest.raises(dpt.DomainError, match=f"has the source '{read}', but .* source '{planned}'"):
            type(plan).from_dict(written, DOMAINS[read])
        return
    back = type(plan).from_dict(written, DOMAINS[read])
    assert back.domain.source == source_of(back.release(VISITS)) == back.to_dict()["domain_source"] == planned
    assert DOMAINS[read].source == read  # it is what it was
    assert (HEADLINES[planned] in repr(back)) and ("the keys" in repr(back)) == (planned != "given")


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_without_a_source_is_incomplete(kind):
    plan = dpt.plan(DOMAINS["given"], **LOSS, **KINDS[kind])
    written = plan.to_dict()
    for odd in (None, "elsewhere", ["observed"], {}, 1):
        with pytest.raises(dpt.ArgumentError, match="`data` is not a valid plan"):
            type(plan).from_dict(replaced(written, ("domain_source",), odd), DOMAINS["given"])
    with pytest.raises(dpt.ArgumentError, match="`data` is not a valid plan"):
        type(plan).from_dict(without(written, "domain_source"), DOMAINS["given"])


@each("source", SOURCES)
def test_the_verifier_knows_the_source(source):
    assert COMMON["domain_source"](source)


def test_a_plan_of_numbers_alone_is_given():
    tree = dpt.Tree.from_branching([2, 3])
    written = dpt.plan(tree, epsilon=1.0).to_dict()
    assert written["domain_source"] == "given"
    assert "domain_source" in dpt.Plan.from_dict(written, tree).to_dict()
