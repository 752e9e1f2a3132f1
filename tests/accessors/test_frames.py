"""`.dp` on frames and series: the verbs on distributions, their signatures and what completion shows."""

import inspect

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_distribution import VERBS, small
from tests.helpers_random import rng


@pytest.mark.parametrize("verb", VERBS)
def test_accessors_are_the_verbs(verb):
    frame = small([(0, 1), (1, 2), (2, 3)])
    options = {"bounds": (0, 4), "bins": 4, "epsilon": 1.0, "rng": None}
    own = {"quantiles": ([0.25, 0.5],), "range_counts": ([(0, 4)],)}.get(verb, ())

    def call(method, *first):
        return method(*first, **{**options, "rng": rng(3)})

    expected = call(getattr(dpt, verb), frame, "x", *own)
    pd.testing.assert_frame_equal(call(getattr(frame.dp, verb), "x", *own), expected)
    pd.testing.assert_frame_equal(call(getattr(frame["x"].dp, verb), *own), expected)
    nameless = call(getattr(frame["x"].rename(None).dp, verb), *own)
    pd.testing.assert_frame_equal(nameless, expected, check_names=False)
    with pytest.raises(TypeError, match="epsilom"):
        getattr(frame.dp, verb)("x", *own, **options, epsilom=1)


@pytest.mark.parametrize("verb", [*VERBS, "release_distribution"])
def test_signatures_list_the_options(verb):
    options = set(inspect.signature(dpt.release_distribution).parameters) - {"frame", "column"}
    of_frames = {"by", "domain", "privacy_unit", "max_contributions"}
    assert options <= set(inspect.signature(getattr(dpt, verb)).parameters)
    assert options <= set(inspect.signature(getattr(pd.DataFrame.dp, verb)).parameters)
    of_series = set(inspect.signature(getattr(pd.Series.dp, verb)).parameters)
    assert options - of_frames <= of_series and not of_frames & of_series
    assert "options" not in of_series and "epsilon" in of_series


def test_completion_shows_what_the_data_can_do(tmp_path):
    frame = pd.DataFrame({"k": ["a", "b"] * 500, "x": 1})
    options = {"domain": ["a", "b"], "epsilon": 1.0}
    counts = frame.dp.tree_counts("k", **options)
    derived = {"proportions", "change_from", "combine", "top", "reliability"}
    views = {"domain", "level", "plot", "to_file", "to_html", *derived}
    verbs = {"tree_counts", "plan", "quantiles", "release"}
    assert verbs <= {*dir(frame.dp)} and not views & {*dir(frame.dp)}
    quantiles = frame.dp.quantiles("x", 0.5, by=["k"], bounds=(0, 4), granularity=1, **options)
    for table in (counts, counts.head(1), pd.DataFrame(counts.to_dict("list")), quantiles):
        assert {*dir(table.dp)} == views
    for method in (*dir(frame.dp), *dir(counts.dp)):
        assert hasattr(frame.dp, method) or method == "plot"


@pytest.mark.parametrize("by", [["k"], dpt.prefixes("k", chars=[1])])
@pytest.mark.parametrize("private", [True, False])
def test_a_plan_takes_what_tree_counts_takes(by, private):
    frame = pd.DataFrame({"k": ["a", "b"] * 500})
    options = {"epsilon": 1.0, "delta": 1e-6}
    if private and isinstance(by, list):
        options |= {"private_keys": ["k"], "privacy_unit": dpt.ROWS}
    elif private:
        with pytest.raises(dpt.ArgumentError, match="cannot be given with a tree of all prefixes"):
            frame.dp.plan(by, private_keys=["k"], **options)
        with pytest.raises(dpt.ArgumentError, match="cannot be given with a tree of all prefixes"):
            frame.dp.plan(by, domain=["a"], **options)
    elif isinstance(by, list):
        options["domain"] = ["a", "b"]
    table = frame.dp.tree_counts(by, rng=rng(1), **options)
    pd.testing.assert_frame_equal(frame.dp.plan(by, **options).release(frame, rng=rng(1)), table)


def test_each_method_of_released_tables_takes_a_crossed_one_or_refuses_it_by_name():
    options = {"domain": {"place": ["CA", "NY"], "sex": ["F", "M"]}, "rho": 1.0, "keep": ["linear"]}
    records = pd.DataFrame({"state": ["CA", "NY"] * 20, "sex": ["F", "F", "M", "M"] * 10})
    table, before = (records.dp.tree_counts({"place": "state", "sex": "sex"}, **options) for _ in range(2))
    works = {
        "change_from": (before,), "combine": ({"women": {"sex": ["F"]}},), "domain": (),
        "margin": ("state",), "proportions": ("total",), "reliability": (), "to_html": (), "top": (1,),
    }  # fmt: skip
    for name, arguments in works.items():
        assert getattr(table.dp, name)(*arguments) is not None, name
    refused = {
        "level": lambda: table.dp.level("state"),
        "levels": table.dp.plot.levels,
        "icicle": table.dp.plot.icicle,
        "heatmap": table.dp.plot.heatmap,
    }
    for name, call in refused.items():
        with pytest.raises(ArgumentError, match=r"(?s)crossed hierarchies.*axes.*Hint: .*margin\("):
            call()
        assert name
    assert {*dir(table.dp)} == {*works, "plot", "to_file"}
