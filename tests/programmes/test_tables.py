"""The plans of a programme are those of the verbs with the same arguments."""

import datetime

import pandas as pd
import pytest

import pandas_dptree as dpt

REGIONS = pd.DataFrame({"region": ["N", "S", "W"], "closed": [False, False, True]})
PRODUCTS = pd.DataFrame({"category": ["c", "c"], "product": ["p", "q"]})
UNIT = {"privacy_unit": "u", "max_contributions": 2, "epsilon": 2.0, "delta": 1e-6}
PERSON = {name: value for name, value in UNIT.items() if name != "max_contributions"}
MARCH = {"start": "2025-03-01", "end": "2025-03-31"}
HIERARCHIES = {
    "place": {"by": "region", "domain": "regions.csv", "structural_zeros": "closed"},
    "net": {"prefixes": {"column": "ip", "bits": [8, 16], "notation": "ipv4"}},
    "map": {"quadtree": {"y": "y", "x": "x", "depth": 3, "bounds": [[0, 10], [0, 10]]}},
    "kind": {"mapping": {"table": "products.csv", "by": ["category", "product"]}},
    "when": {"calendar": {"column": "date", "levels": ["month", "day"], **MARCH}},
    "age": {"cut": {"column": "age", "levels": {"band": [0, 20, 60, 120], "ten": 10}}},
    "hidden": {"by": ["region", "product"], "domain": ["N", "S"], "private_keys": ["product"]},
}  # fmt: skip


def place():
    return dpt.Domain.from_frame(REGIONS, by=["region"], structural_zeros="closed")


def band():
    return dpt.cut("age", levels={"band": [0, 20, 60, 120]})


def costs():
    return {"columns": ["cost"], "bounds": {"cost": [0, 100]}}


COSTS = {"columns": {"cost": {"bounds": [0, 100]}}}
YEAR = [datetime.date(2026, 1, 1), datetime.date(2026, 12, 31)]
CASES = {
    "options": (
        {"verb": "counts", "by": "place", "consistency": "linear", "split": {"total": 0.25, "region": 0.75}},
        lambda: dpt.plan(
            place(), consistency="linear", split={"total": 0.25, "region": 0.75}, **UNIT
        ),
    ),
    "known": (
        {"verb": "counts", "by": "place", "known": "known.csv"},
        lambda: dpt.plan(place(), known={"total": 30}, **UNIT),
    ),
    "implicit": (
        {"verb": "counts", "by": "net"},
        lambda: dpt.plan(dpt.prefixes("ip", bits=[8, 16], notation="ipv4"), **UNIT),
    ),
    "squares": (
        {"verb": "counts", "by": "map", "down_to": "quad_2"},
        lambda: dpt.plan(
            dpt.derived_domain([dpt.quadtree("y", "x", depth=2, bounds=[[0, 10], [0, 10]])]), **UNIT
        ),
    ),
    "nested": (
        {"verb": "sums", "by": ["age", "kind"], **COSTS},
        lambda: dpt.plan_sums(
            dpt.derived_domain(
                [dpt.cut("age", levels={"band": [0, 20, 60, 120], "ten": 10}),
                 dpt.mapping(PRODUCTS, by=["category", "product"])]
            ), **costs(), **UNIT,
        ),
    ),
    "calendar": (
        {"verb": "counts", "by": "when", "down_to": "month"},
        lambda: dpt.plan(
            dpt.derived_domain([dpt.calendar("date", ["month"], **MARCH)]), **UNIT
        ),
    ),
    "means": (
        {"verb": "means", "by": "age", "down_to": "band", "confidence": 0.9, **COSTS},
        lambda: dpt.plan_means(dpt.derived_domain([band()]), confidence=0.9, **costs(), **UNIT),
    ),
    "agg": (
        {"verb": "agg", "by": "place", "columns": {
            "visits": "count", "spent": {"sum": "cost", "bounds": [0, 100]},
            "mean_age": {"mean": "age", "bounds": [0, 120], "granularity": 0.5}}},
        lambda: dpt.plan_agg(
            place(),
            {"visits": "count", "spent": dpt.sum("cost", bounds=[0, 100]),
             "mean_age": dpt.mean("age", bounds=[0, 120], granularity=0.5)}, **UNIT,
        ),
    ),
    "units": (
        {"verb": "units", "by": "place", "max_nodes": 2, "known": "known.csv", "confidence": 0.9},
        lambda: dpt.plan_units(place(), max_nodes=2, known={"total": 30}, confidence=0.9, **PERSON),
    ),
    "units of days": (
        {"verb": "units", "by": "when", "max_nodes": {"month": 1, "day": 3}, "mechanism": "laplace"},
        lambda: dpt.plan_units(
            dpt.derived_domain([dpt.calendar("date", ["month", "day"], **MARCH)]),
            max_nodes={"date_month": 1, "date_day": 3}, mechanism="laplace", **PERSON,
        ),
    ),
    "units beside rows": (
        {"verb": "agg", "by": "place", "max_nodes": {"region": 2}, "columns": {
            "visits": "count", "visitors": "units", "each": "count_per_unit"}},
        lambda: dpt.plan_agg(
            place(), {"visits": "count", "visitors": "units", "each": "count_per_unit"}, max_nodes=2, **UNIT
        ),
    ),
    "private": (
        {"verb": "counts", "by": "hidden", "split": "doubling"},
        lambda: dpt.plan(
            dpt.Domain.from_frame(REGIONS[:2][["region"]], by=["region"]),
            private_keys=["product"], split="doubling", **UNIT,
        ),
    ),
    "relative": (
        {"verb": "counts", "by": "place", "mechanism": {"alpha": 0.5}},
        lambda: dpt.plan(place(), mechanism=dpt.Multiplicative(alpha=0.5), **UNIT),
    ),
    "distribution": (
        {"verb": "distribution", "column": "cost", "bounds": [0, 100], "bins": 10, "by": "place"},
        lambda: dpt.plan_distribution("cost", bounds=[0, 100], bins=10, domain=place(), **UNIT),
    ),
    "median": (
        {"verb": "quantiles", "column": "cost", "q": 0.5, "bounds": [0, 100]},
        lambda: dpt.plan_quantiles("cost", 0.5, bounds=[0, 100], **UNIT),
    ),
    "quartiles of dates": (
        {"verb": "quantiles", "column": "date", "q": [0.25, 0.5, 0.75], "by": "place", "granularity": "6h",
         "bounds": YEAR, "bins": 4, "confidence": 0.9,
         "mechanism": "exponential"},
        lambda: dpt.plan_quantiles(
            "date", [0.25, 0.5, 0.75], bounds=YEAR, bins=4,
            granularity=pd.Timedelta(6, "h"), confidence=0.9, mechanism="exponential", domain=place(), **UNIT,
        ),
    ),
    "deciles": (
        {"verb": "quantiles", "column": "cost", "q": [0.1, 0.9], "bounds": [0, 100], "bins": 8,
         "mechanism": "laplace", "known": {"total": 90}},
        lambda: dpt.plan_quantiles(
            "cost", [0.1, 0.9], bounds=[0, 100], bins=8, mechanism="laplace", known={"total": 90}, **UNIT
        ),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    REGIONS.to_csv(made / "regions.csv", index=False)
    PRODUCTS.to_csv(made / "products.csv", index=False)
    pd.DataFrame({"region": [None], "count": [30]}).to_csv(made / "known.csv", index=False)
    return made


@pytest.mark.parametrize("case", CASES)
def test_plans_are_those_of_the_verbs(folder, case):
    table, plan = CASES[case]
    columns = ("u", "region", "ip", "y", "x", "product", "date", "age", "cost")
    document = {
        "format": "dptree 1",
        "sources": {"r": {"files": "r.parquet", "privacy_unit": "u", "max_contributions": 2,
                          "types": dict.fromkeys(columns, "string")}},
        "hierarchies": HIERARCHIES,
        "budget": {"epsilon": 2.0, "delta": 1e-6},
        "tables": {"one": table},
        "outputs": {"folder": "out"},
    }  # fmt: skip
    programme = dpt.Programme.from_dict(document, folder=folder)
    assert programme.check().tables["one"].plan.digest == plan().digest
    assert "Together epsilon 2 and delta 1e-06 (exactly the budget)" in programme.describe()


def test_targets_of_areas(folder):
    paths = [["north"], ["south", "x"]]
    document = {
        "format": "dptree 1",
        "sources": {"r": {"files": "r.parquet", "each_row": True, "types": {"region": "x", "product": "x"}}},
        "hierarchies": {
            "place": {"by": ["region", "product"], "domain": [paths[1], ["south", "y"], ["north", "x"]]}
        },
        "budget": {"rho": 0.5},
        "tables": {
            "one": {"verb": "counts", "by": "place", "target": {"Coast": {"paths": paths, "error": 9}}}
        },
        "outputs": {"folder": "out"},
    }  # fmt: skip
    found = dpt.Programme.from_dict(document, folder=folder).check().tables["one"].plan
    by_hand = dpt.plan(
        found.domain, target={dpt.combine(paths): 9}, mechanism="gaussian", privacy_unit=dpt.ROWS
    )
    assert found.digest == by_hand.digest


def test_what_is_cut_off_is_not_listed(folder):
    squares = {"quadtree": {"y": "y", "x": "x", "depth": 13, "bounds": [[0, 10], [0, 10]]}}
    document = {
        "format": "dptree 1",
        "sources": {"r": {"files": "r.parquet", "each_row": True, "types": {"x": "double", "y": "double"}}},
        "hierarchies": {"map": squares},
        "budget": {"rho": 0.1},
        "tables": {"one": {"verb": "counts", "by": "map", "down_to": "quad_2"}},
        "outputs": {"folder": "out"},
    }
    checked = dpt.Programme.from_dict(document, folder=folder).check()
    assert checked.hierarchies["one"].domain.tree.level_sizes == (1, 4, 16)


def test_a_delta_beside_a_rho_is_for_tables_whose_rows_the_records_decide(folder):
    source = {
        "files": "r.parquet",
        "each_row": True,
        "types": dict.fromkeys(["region", "product", "ip"], "string"),
    }
    document = {
        "format": "dptree 1",
        "sources": {"r": source},
        "hierarchies": {name: HIERARCHIES[name] for name in ("place", "net", "hidden")},
        "budget": {"rho": 0.3, "delta": 3e-6},
        "tables": {
            "public": {"verb": "counts", "by": "place"},
            "private": {"verb": "counts", "by": "hidden"},
            "prefixes": {"verb": "counts", "by": "net"},
        },
        "outputs": {"folder": "out"},
    }
    programme = dpt.Programme.from_dict(document, folder=folder)
    losses = {name: table.plan.losses.in_rho for name, table in programme.check().tables.items()}
    assert {name: float(delta) for name, (_, delta) in losses.items()} == pytest.approx(
        {"public": 0, "private": 1e-6, "prefixes": 1e-6}, rel=1e-6
    )
    assert [float(rho) for rho, _ in losses.values()] == pytest.approx([0.1] * 3)
    assert "Together rho 0.3 and delta 2e-06 (of a budget of" in programme.describe()


def people(folder, *names, **source):
    """A programme of counts of distinct people, alone and beside their rows."""
    visits = pd.DataFrame({"u": [1, 1, 2, 2, 3], "region": list("NSNNS"), "product": list("pqppq")})
    visits.to_csv(folder / "visits.csv", index=False)
    domain = [["N", "p"], ["N", "q"], ["S", "q"]]
    document = {
        "format": "dptree 1",
        "sources": {"r": {"files": "visits.csv", **source}},
        "hierarchies": {"place": {"by": ["region", "product"], "domain": domain}},
        "budget": {"epsilon": 1e4},
        "tables": {
            "people": {"verb": "units", "by": "place", "max_nodes": {"region": 1, "product": 2}},
            "both": {
                "verb": "agg", "by": "place", "max_nodes": 2,
                "columns": {"visits": "count", "visitors": "units", "each": "count_per_unit"},
            },
        },
        "outputs": {"folder": "out", "write": ["csv"]},
    }  # fmt: skip
    document["tables"] = {name: document["tables"][name] for name in names or document["tables"]}
    return dpt.Programme.from_dict(document, folder=folder)


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_distinct_units_are_described_and_released(tmp_path):
    programme = people(tmp_path, privacy_unit="u", max_contributions=2)
    said = programme.describe()
    assert "distinct u by region, product (6 rows)" in said and "standard error of visitors: total" in said
    assert (
        "counts each u once in a node, in up to 1 of region, 2 of product; max_contributions, which bounds "
        "rows, has no part in it." in said
    )
    assert "counts each u once in a node, in up to 2 of region, 2 of product.\n" in said
    assert "protecting each u with at most 2 rows, add_remove" in said
    assert " units to be of class E" in said
    assert (
        "protecting each u, add_remove"
        in people(tmp_path, "people", privacy_unit="u", max_contributions=2).describe()
    )
    programme.run()
    alone, both = (pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("people", "both"))
    assert both["visitors"].tolist() == [3, 2, 2, 2, 0, 2] and both["visits"].tolist() == [5, 3, 2, 3, 0, 2]
    assert both["each"][0] == pytest.approx(5 / 3, abs=0.1)
    regions = alone.loc[alone["level"] == "region", "count"]
    assert alone["count"][0] == 3 == regions.sum()  # the first unit is counted in one of two regions


def test_rows_that_are_units_cannot_be_counted_as_units(tmp_path):
    with pytest.raises(dpt.ProgrammeError) as caught:
        people(tmp_path, each_row=True).check()
    found = [(".".join(each.path), each.fact, each.hint) for each in caught.value.problems]
    fact = "counts distinct units, and each row of the source r is one."
    hint = 'count the rows by verb = "counts", or state privacy_unit in [sources.r].'
    assert found == [("tables.people", fact, hint), ("tables.both", fact, hint)]
