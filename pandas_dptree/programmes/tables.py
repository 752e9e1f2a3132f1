"""The tables of a programme, planned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from pandas_dptree.errors import ArgumentError, DPTreeWarning, did_you_mean, quote
from pandas_dptree.hierarchy.areas import combine
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.ingest.files.public_tables import read_known
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.planning.targets import within
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.options import (
    AGGREGATIONS,
    DISTRIBUTION,
    JOINT,
    LOSS,
    PLAN,
    QUANTILES,
    SUMS,
    UNIT,
    UNIT_PLAN,
)
from pandas_dptree.privacy.loss import PrivacyLoss, float_within
from pandas_dptree.privacy.unit import ROWS
from pandas_dptree.programmes.hierarchies import Levels, crossed, nested
from pandas_dptree.programmes.measured import check_max_nodes, counts_units, values_of
from pandas_dptree.programmes.problems import Problem, Problems, Section
from pandas_dptree.programmes.programme import Hierarchy, Table
from pandas_dptree.verbs import plans

__all__ = ["Sketch", "check_shares", "loss_of", "planned", "sketch_of", "spent_by", "typed"]

_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    verb: tuple(name for name in options if name not in (*LOSS, *UNIT))
    for verb, options in (
        ("counts", PLAN),
        ("units", UNIT_PLAN),
        ("sums", SUMS),
        ("means", JOINT),
        ("agg", AGGREGATIONS),
        ("distribution", DISTRIBUTION),
        ("quantiles", QUANTILES),
    )
}
"""The options of each verb; the budget states the loss, and the source whom to protect."""

_OF_ALL: Final = ("distribution", "quantiles")
"""The verbs that need no hierarchy, and take one alone."""

_BY_LEVEL: Final = ("split", "level_weights", "target", "max_per_node", "max_nodes")

_EXPLAINED: Final = {
    **{key: ("belongs to the budget, not to a table.", "give the table a share of it.") for key in LOSS},
    **{key: ("belongs to the source, not to a table.", "write it below [sources.<name>].") for key in UNIT},
    "domain": ("belongs to the hierarchy, not to a table.", "write it below [hierarchies.<name>]."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A table as the programme states it, before it is planned; `values` are the arguments of its verb."""

    name: str
    section: Section
    verb: str
    source: str
    parts: tuple[str, ...]
    hierarchy: Hierarchy | None
    options: Mapping[str, Any]
    values: Mapping[str, Any]
    share: Fraction | None

    @property
    def counts_units(self) -> bool:
        """Whether the table has the number of distinct units."""
        return counts_units(self.verb, self.values)

    @property
    def needs_delta(self) -> bool:
        """Whether the records decide which nodes the table has."""
        hierarchy = self.hierarchy
        return hierarchy is not None and (
            bool(hierarchy.private_keys) or isinstance(hierarchy.domain, PrefixTree)
        )

    @property
    def columns(self) -> list[str]:
        """The columns of the records that the table reads."""
        keys: list[Any] = []
        if self.hierarchy is not None:
            domain = self.hierarchy.domain
            if isinstance(domain, Domain | CrossedDomain):
                keys = [*domain.sources]
            elif domain is not None:
                keys = [domain.column]
            keys += self.hierarchy.private_keys
        values = self.values.get("columns", self.values.get("column", []))
        return list(dict.fromkeys([*keys, *([values] if isinstance(values, str) else values)]))


def sketch_of(
    name: str, section: Section, sources: Sequence[str], levels: Mapping[str, Levels | None], folder: Path
) -> Sketch | None:
    """Read a table; note what is wrong, and then return None."""
    before = len(section.problems.found)
    section.rest(["verb", "by", "source", "down_to", "share"])
    verb = section.choose("verb", list(_OPTIONS))
    if "verb" not in section.entries:
        section.add(None, "lacks verb.", f"choose one of {', '.join(_OPTIONS)}.")
    share = section.take("share", "a number")
    if share is not None and not 0 < share <= 1:
        section.add("share", f"is {share}, not between 0 and 1.", "for example share = 0.5.")
        section.entries["share"] = share = None
    source = section.choose("source", sources, sources[0] if len(sources) == 1 else None)
    if source is None and len(sources) > 1 and "source" not in section.entries:
        section.add(None, "lacks source.", f"choose one of {', '.join(sources)}.")
    if verb is None:  # which keys it takes is not known
        return None
    crosses = isinstance(section.entries.get("by"), dict)
    if crosses and verb in ("units", *_OF_ALL):
        hint = "by = [...] nests the hierarchies, from the coarsest; or make a table of each."
        section.add("by", f'crosses several hierarchies, and verb = "{verb}" takes one.', hint)
        return None
    hierarchy = (
        _crossed(section, levels) if crosses else _hierarchy(section, levels, needed=verb not in _OF_ALL)
    )
    values = values_of(section, verb)
    check_max_nodes(section, verb, values)
    options = section.rest(_OPTIONS[verb])
    parts = _parts(section)
    aliases = {alias: full for part in parts for alias, full in _aliases(levels.get(part))}
    for key in _BY_LEVEL:
        if isinstance(options.get(key), dict):
            options[key] = _in_full(options[key], aliases)
    if isinstance(options.get("margins"), list):
        options["margins"] = [_in_full(margin, aliases) for margin in options["margins"]]
    own = {key: key for key in ("known", "target", "mechanism")} | {"paths": "target"}
    with section.problems.catching(section.path, own):
        _read_options(options, [] if hierarchy is None else list(map(str, _names(hierarchy))), folder)
    section.finish(_EXPLAINED)
    lacks_hierarchy = hierarchy is None and (verb not in _OF_ALL or parts)  # it is wrong itself
    if len(section.problems.found) > before or source is None or lacks_hierarchy:
        return None
    return Sketch(
        name=name, section=section, verb=verb, source=source, parts=parts, hierarchy=hierarchy,
        options=options, values=values, share=None if share is None else typed(share),
    )  # fmt: skip


def _in_full(given: Any, aliases: Mapping[str, str]) -> Any:
    """Replace short names of levels, which may be keys or values of tables, or entries of lists."""
    if isinstance(given, dict):
        return {aliases.get(key, key): _in_full(value, aliases) for key, value in given.items()}
    if isinstance(given, list):
        return tuple(_in_full(each, aliases) for each in given)
    return aliases.get(given, given) if isinstance(given, str) else given


def _aliases(levels: Levels | None) -> Sequence[tuple[str, str]]:
    return [] if levels is None else list(levels.aliases.items())


def _names(hierarchy: Hierarchy) -> Sequence[Any]:
    public = hierarchy.domain.by if isinstance(hierarchy.domain, Domain | CrossedDomain) else ()
    return [*public, *hierarchy.private_keys]


def _parts(section: Section) -> tuple[str, ...]:
    given = section.entries.get("by") or ()
    if isinstance(given, dict):
        each = (axis if isinstance(axis, list) else [axis] for axis in given.values())
        return tuple(name for names in each for name in names if isinstance(name, str))
    return (given,) if isinstance(given, str) else tuple(given)


def _crossed(section: Section, levels: Mapping[str, Levels | None]) -> Hierarchy | None:
    """Return the hierarchies of a table, crossed; None if they are wrong."""
    given = section.take("by", "a table")
    if "down_to" in section.entries:
        section.take("down_to", "a text")
        section.add(
            "down_to",
            "has no meaning for crossed hierarchies.",
            "leave it out, and list margins: what they do not need is not measured.",
        )
        return None
    axes: dict[str, list[Levels | None]] = {}
    for axis, stated in given.items():
        names = [stated] if isinstance(stated, str) else stated
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            section.add("by", f"{quote(axis)} names no hierarchy.", 'for example by = { place = "place" }.')
            return None
        for name in names:
            if name not in levels:
                hint = f"{did_you_mean([name], levels)}the hierarchies are {', '.join(levels)}."
                section.add("by", f"{quote(name)} is no hierarchy.", hint)
                return None
        axes[axis] = [levels[name] for name in names]
    found = {axis: [part for part in parts if part is not None] for axis, parts in axes.items()}
    if found != axes:  # one of them is wrong itself
        return None
    with section.problems.catching(section.path, {"by": "by", "axes": "by"}):
        return crossed(found)
    return None


def _hierarchy(section: Section, levels: Mapping[str, Levels | None], *, needed: bool) -> Hierarchy | None:
    """Return the hierarchies of a table, nested and cut off; None if there are none, or they are wrong."""
    given = section.take("by", "a text or a list of texts")
    if not given:
        if "by" in section.entries and given is not None:
            section.add("by", "is empty.", f"name one of {', '.join(levels)}.")
        elif needed and "by" not in section.entries:
            section.add(None, "lacks by, its hierarchy.", f"name one of {', '.join(levels)}.")
        if "down_to" in section.entries:
            section.add("down_to", "has no meaning without by.", "leave it out, or name a hierarchy.")
        return None
    names = [given] if isinstance(given, str) else given
    unknown = [name for name in names if name not in levels]
    for name in unknown:
        hint = f"{did_you_mean([name], levels)}the hierarchies are {', '.join(levels)}."
        section.add("by", f"{quote(name)} is no hierarchy.", hint if levels else "add [hierarchies.<name>].")
    parts = [levels[name] for name in names if name in levels]
    found = [part for part in parts if part is not None]
    if unknown or len(found) < len(parts):
        return None
    if any(part.private for part in found[:-1]):
        section.add("by", "nests a hierarchy below private keys.", "name the one with private keys last.")
        return None
    everything = [level for part in found for level in part.names]
    aliases = {alias: full for part in found for alias, full in part.aliases.items()}
    down_to = section.take("down_to", "a text", everything[-1])
    last = aliases.get(down_to, down_to)
    if last not in everything:
        several = "hierarchies" if len(names) > 1 else "hierarchy"
        section.add(
            "down_to",
            f'"{down_to}" is no level of the {several} {", ".join(names)}.',
            f"its levels are {', '.join(everything)}.",
        )
        return None
    with section.problems.catching(section.path, {"by": "by", "down_to": "down_to"}):
        return nested(found, everything.index(last) + 1, implicit=isinstance(given, str))
    return None


def _read_options(options: dict[str, Any], names: Sequence[str], folder: Path) -> None:
    """Replace what TOML writes for options by what plans take."""
    if isinstance(options.get("known"), str):
        options["known"] = read_known(folder / options["known"], names)
    if isinstance(options.get("mechanism"), dict):
        known = {each.name for each in fields(Multiplicative)}
        if "alpha" not in options["mechanism"] or not known >= set(options["mechanism"]):
            raise ArgumentError(
                "mechanism",
                "must be a text, or a table with alpha.",
                hint=f"its keys are {', '.join(sorted(known))}.",
            )
        options["mechanism"] = Multiplicative(**options["mechanism"])
    if isinstance(options.get("target"), dict):
        options["target"] = dict(_target(level, each) for level, each in options["target"].items())


def _target(name: str, given: Any) -> tuple[Any, Any]:
    """Read the error of a level, or of an area, whose name is nowhere else."""
    if not isinstance(given, dict):
        return name, given
    if set(given) == {"paths", "error"}:
        return combine(given["paths"]), given["error"]
    if set(given) == {"within", "confidence"}:
        return name, within(given["within"], confidence=given["confidence"])
    raise ArgumentError(
        "target",
        f"of {name} must be a number, or have within and confidence; or of an area, paths and error.",
        hint='for example 25, or { paths = [["North"], ["South", "Harbour"]], error = 25 }.',
    )


# Losses ---------------------------------------------------------------------------------------------------


def check_shares(problems: Problems, sections: Sequence[Section], of: str) -> None:
    """Note tables without a share, and shares that add up to more than the budget `of`."""
    stated = {each.path: each.entries.get("share") for each in sections}
    numbers = {p: s for p, s in stated.items() if isinstance(s, int | float) and not isinstance(s, bool)}
    total = sum(map(typed, numbers.values()), Fraction(0))
    if total > 1:
        where = [f"{'.'.join((*path, 'share'))}{_at(problems.line((*path, 'share')))}" for path in numbers]
        problems.add(
            (*list(numbers)[-1], "share"),
            f"the shares add up to {float(total):g}, more than the budget of {of}.",
            f"lower one of {', '.join(where)}.",
        )
    if not any("share" in each.entries or "target" in each.entries for each in sections):
        return
    for each in sections:
        if not {"share", "target", *LOSS} & {*each.entries, *each.meant}:
            hint = "for example share = 0.2, or a target. If no table has either, all get the same."
            each.add(None, "lacks a share of the budget.", hint)


def typed(number: float) -> Fraction:
    """Return a number exactly as it is written."""
    return Fraction(repr(number))


def _at(line: int | None) -> str:
    return "" if line is None else f" (line {line})"


def loss_of(sketch: Sketch, budget: PrivacyLoss, n_tables: int, *, even: bool) -> PrivacyLoss | None:
    """Return what a table may spend; None if its target decides."""
    share = Fraction(1, n_tables) if even else sketch.share
    if share is None:
        return None
    parts = {name: float_within(typed(whole) * share) for name, whole in budget.to_dict().items()}
    if budget.rho is not None and not sketch.needs_delta:
        parts.pop("delta", None)
    return PrivacyLoss(**parts)


def spent_by(table: Table, budget: PrivacyLoss) -> tuple[Fraction, Fraction]:
    """Return what a table spends of a budget, in its currency, and the delta."""
    losses = table.plan.losses
    return losses.in_rho if budget.rho is not None else losses.in_epsilon or losses.in_rho


# Plans ----------------------------------------------------------------------------------------------------


def planned(
    sketch: Sketch,
    loss: PrivacyLoss | None,
    budget: PrivacyLoss,
    unit: Mapping[str, Any],
    notes: list[Problem],
) -> Table | None:
    """Plan a table; note what is wrong, and then return None. Warnings are added to the `notes`."""
    section = sketch.section
    if sketch.counts_units and unit["privacy_unit"] is ROWS:
        section.add(
            None,
            f"counts distinct units, and each row of the source {sketch.source} is one.",
            f'count the rows by verb = "counts", or state privacy_unit in [sources.{sketch.source}].',
        )
        return None
    options = {**sketch.options, **unit}
    if sketch.verb == "units":  # whose rows are not counted
        options.pop("max_contributions", None)
    if loss is not None:
        options |= loss.to_dict()
    elif "target" not in options:
        return None  # it lacks a share
    else:
        options.setdefault("mechanism", "gaussian" if budget.rho is not None else "laplace")
    plan: Plan[Any] | None = None
    known = {key: key for key in section.entries}
    if "columns" in known:
        known |= dict.fromkeys(("bounds", "granularity", "aggregations"), "columns")
    with (
        section.problems.catching(section.path, known),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", DPTreeWarning)
        plan = _plan(sketch, options)
        for each in caught:
            fact, _, hint = str(each.message).partition("\nHint: ")
            note = Problem(section.path, section.problems.line(section.path), fact.replace("`", ""), hint)
            if isinstance(each.message, DPTreeWarning):
                notes.append(note)
    if plan is None:
        return None
    line = section.problems.line(section.path)
    return Table(
        name=sketch.name, verb=sketch.verb, source=sketch.source, hierarchy=sketch.parts, plan=plan, line=line
    )


def _plan(sketch: Sketch, options: Mapping[str, Any]) -> Plan[Any]:
    """Call the function that plans for a verb."""
    hierarchy, values = sketch.hierarchy, dict(sketch.values)
    domain: Any = None if hierarchy is None else hierarchy.domain
    if sketch.verb == "counts":
        assert hierarchy is not None
        private = list(hierarchy.private_keys) or None
        plan: Callable[..., Plan[Any]] = plans.plan
        return plan(domain, private_keys=private, **options)
    if sketch.verb == "distribution":
        return plans.plan_distribution(values.pop("column"), domain=domain, **values, **options)
    if sketch.verb == "quantiles":
        return plans.plan_quantiles(values.pop("column"), values.pop("q"), domain=domain, **values, **options)
    if sketch.verb == "units":
        return plans.plan_units(domain, **options)
    if sketch.verb == "agg":
        return plans.plan_agg(domain, values["aggregations"], **options)
    if not any(values["granularity"].values()):
        del values["granularity"]
    return {"sums": plans.plan_sums, "means": plans.plan_means}[sketch.verb](domain, **values, **options)
