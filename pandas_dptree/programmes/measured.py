"""What the tables of a programme measure, as the verbs take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from pandas_dptree.programmes.problems import EXAMPLES, Section
from pandas_dptree.verbs.aggregations import Aggregation, Word
from pandas_dptree.verbs.aggregations import mean as mean_of
from pandas_dptree.verbs.aggregations import sum as sum_of

__all__ = ["check_max_nodes", "counts_units", "values_of"]


def values_of(section: Section, verb: str) -> dict[str, Any]:
    """Return what a verb measures: columns and their bounds."""
    if verb in ("sums", "means"):
        found: dict[str, Any] = {"columns": [], "bounds": {}, "granularity": {}}
        if section.need("columns", "a table", EXAMPLES["columns"]) == {}:
            section.add(None, "lacks columns.", EXAMPLES["columns"])
        for column, each in section.sections("columns"):
            found["columns"].append(column)
            found["bounds"][column] = each.need("bounds", "a list", "for example bounds = [0, 500].")
            found["granularity"][column] = each.take("granularity", "a number")
            each.finish()
        return found
    if verb == "agg":
        return _aggregations(section)
    if verb not in ("distribution", "quantiles"):
        return {}
    found = {
        "column": section.need("column", "a text", 'for example column = "cost".'),
        "bins": section.rest(["bins"]).get("bins"),
        "bounds": section.take("bounds", "a list"),
    }
    if verb == "quantiles":
        found["q"] = section.need("q", "a number or a list", "for example q = [0.25, 0.5, 0.75].")
        found["granularity"] = section.take("granularity", "a number or a text")
    return found


def _aggregations(section: Section) -> dict[str, Any]:
    """Return the columns that are read, and what is released of them by the names of columns of the table."""
    made: dict[str, Any] = {}
    for name, given in section.take("columns", "a table", {}).items():
        made[name] = given if given in _WORDS else _sum_or_mean(section, name, given)
    if not section.entries.get("columns"):
        section.add(None, "lacks columns.", f"for example columns = {{ average = {_AGGREGATION} }}.")
    read = [each.quantity.column for each in made.values() if isinstance(each, Aggregation)]
    return {"columns": list(dict.fromkeys(read)), "aggregations": made}


def _sum_or_mean(section: Section, name: str, given: Any) -> Aggregation | None:
    """Read ``{ mean = "cost", bounds = [0, 500] }``; note what is wrong, and then return None."""
    path = (*section.path, "columns", name)
    kinds = [each for each in _AGGREGATIONS if isinstance(given, dict) and each in given]
    if len(kinds) != 1:
        fact = f"must be {_IN_WORDS}, or a table with sum or mean, one of them."
        section.problems.add(path, fact, f"for example {_AGGREGATION}.")
        return None
    each = Section(section.problems, path, given)
    column = each.take(kinds[0], "a text")
    bounds = each.need("bounds", "a list", "for example bounds = [0, 500].")
    granularity = each.take("granularity", "a number")
    each.finish()
    if column is None or bounds is None:
        return None
    with section.problems.catching(path, {"bounds": "bounds", "granularity": "granularity"}):
        return _AGGREGATIONS[kinds[0]](column, bounds=bounds, granularity=granularity)
    return None


_WORDS: Final[Sequence[object]] = get_args(Word)
_IN_WORDS: Final = '"count", "units" or "count_per_unit"'
_AGGREGATIONS: Final = {"sum": sum_of, "mean": mean_of}
_AGGREGATION: Final = '{ mean = "cost", bounds = [0, 500] }'


def counts_units(verb: str, values: Mapping[str, Any]) -> bool:
    """Whether a table has the number of distinct units."""
    return verb == "units" or "units" in values.get("aggregations", {}).values()


def check_max_nodes(section: Section, verb: str, values: Mapping[str, Any]) -> None:
    """Note if a table of distinct units does not say in how many nodes one is counted, or another does."""
    if not counts_units(verb, values):
        if "max_nodes" in section.entries:
            section.rest(["max_nodes"])
            fact = "bounds the nodes of distinct units, which the table does not count."
            section.add("max_nodes", fact, 'leave it out, or count them by verb = "units".')
        return
    section.take("max_nodes", "a whole number or a table")
    if "max_nodes" not in section.entries:
        fact = "lacks max_nodes, in how many nodes of a level one unit is counted."
        section.add(None, fact, EXAMPLES["max_nodes"])
    if set(values.get("aggregations", {}).values()) == {"units"}:
        hint = (
            'use verb = "units", or add the number of their rows: { visits = "count", visitors = "units" }.'
        )
        section.add("columns", "counts distinct units alone.", hint)
