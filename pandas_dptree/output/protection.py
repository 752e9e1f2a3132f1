"""The protection of a release in words, from the provenance that its table states."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.output.pages.texts import ENGLISH, Texts, isolated
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.risk import found_at_most, suspicion_after

__all__ = [
    "UNKNOWN_SOURCE",
    "Aggregate",
    "aggregates_of",
    "capped_in_words",
    "counts_units_alone",
    "distinct_in_words",
    "hidden_in_words",
    "is_repeatable",
    "joined",
    "loss_in_words",
    "objections",
    "risk_in_words",
    "stated_loss",
    "statement",
    "undercount",
    "undercount_in_words",
]

Aggregate = Literal["count", "sum", "signed sum", "mean", "quantile", "units"]
"""What a column shows of the rows of a unit, or that it counts units; a signed sum may have negative terms.
"""

UNKNOWN_SOURCE = "unknown"
"""The source of noise, if a plan alone tells how a table was made."""


def statement(provenance: Mapping[str, Any], texts: Texts = ENGLISH) -> list[str]:
    """Describe the protection of a release in sentences of plain text.

    `provenance` is from ``attrs["dp"]`` of a released table; it is empty if that was lost.
    """
    if not provenance:
        return [texts["protection.unknown"]]
    kind = "protection.loss" + ".test" * is_repeatable(provenance) + ".useless" * _is_useless(provenance)
    return [
        texts.fill(kind, loss=loss_in_words(provenance, texts)),
        _unit(provenance, texts),
        *filter(None, [_capped(provenance, texts)]),
        hidden_in_words(provenance, texts),
        *_risk(provenance, texts),
        _rows(provenance, texts),
        *_clipped(provenance, texts),
        *_known(provenance, texts),
        *_drawn(provenance, texts),
        *_noise(provenance, texts),
        *([texts["secrecy.unknown"]] if provenance.get("rng") == UNKNOWN_SOURCE else []),
        *_charge(provenance, texts),
        texts.fill("guarantee", version=isolated(provenance.get("version", texts["version.unknown"]))),
    ]


def loss_in_words(provenance: Mapping[str, Any], texts: Texts = ENGLISH) -> str:
    """Describe a privacy loss in full."""
    epsilon, delta, rho = (provenance.get(name) for name in ("epsilon", "delta", "rho"))
    kind = "loss.unknown" if epsilon is None else "loss.epsilon"
    kind = kind if rho is None else "loss.rho"
    if delta and kind != "loss.unknown":
        kind = f"{kind}.delta"
    return texts.fill(kind, epsilon=isolated(epsilon), delta=isolated(delta), rho=isolated(rho))


def _is_useless(provenance: Mapping[str, Any]) -> bool:
    loss = stated_loss(provenance)
    return loss is not None and bool(loss.objection)


def stated_loss(provenance: Mapping[str, Any]) -> PrivacyLoss | None:
    """Return the loss that is stated; None if it is no valid one."""
    names = ("epsilon", "delta", "rho")
    try:
        return PrivacyLoss(**{name: provenance[name] for name in names if provenance.get(name) is not None})
    except ArgumentError:
        return None


def _unit(provenance: Mapping[str, Any], texts: Texts) -> str:
    if "privacy_unit" not in provenance:
        return texts["unit.unknown"]
    unit, most = provenance["privacy_unit"], provenance.get("max_contributions")
    if counts_units_alone(provenance):
        return texts.fill("unit.distinct", unit=isolated(unit))
    if unit is not None:
        key = "unit.column.unknown" if most is None else "unit.column"
        return texts.fill(key, unit=isolated(unit), n=most)
    return texts["unit.rows"] if most == 1 else texts.fill("unit.users", n=most)


def counts_units_alone(provenance: Mapping[str, Any]) -> bool:
    """Whether all columns of a table count distinct units, so that nothing depends on the rows of each."""
    return {*aggregates_of(provenance).values()} == {"units"}


def undercount(provenance: Mapping[str, Any], texts: Texts = ENGLISH) -> str:
    """Say that the rows of a unit beyond the bound are missing in a table; empty if it has no unit."""
    if not isinstance(unit := provenance.get("privacy_unit"), str):
        return ""
    kinds = list(aggregates_of(provenance).values())
    counted = undercount_in_words(kinds, unit, provenance.get("max_contributions"), texts)
    return " ".join(filter(None, [counted, _capped(provenance, texts), _distinct(provenance, texts)]))


def _distinct(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Say of each column of distinct units what it counts."""
    several = "quantities" in provenance
    return " ".join(
        distinct_in_words(each["max_nodes"], provenance.get("privacy_unit"), texts, column=name * several)
        for name, each in _quantities(provenance).items()
        if _aggregate(each) == "units" and isinstance(each.get("max_nodes"), Mapping)
    )


def distinct_in_words(
    max_nodes: Mapping[str, int], unit: Hashable, texts: Texts = ENGLISH, *, column: str = ""
) -> str:
    """Say how often a unit is counted, and that such counts do not add up; for one column of several or all.

    `max_nodes` has the bounds of the levels below the root.
    """
    levels = reversed([*max_nodes.items()])
    parts = [texts.fill("distinct.level", n=n, level=isolated(level)) for level, n in levels]
    key = "distinct.column" if column else "distinct"
    return texts.fill(key, unit=isolated(unit), levels=texts.joined(parts), name=isolated(column))


def _capped(provenance: Mapping[str, Any], texts: Texts) -> str:
    kinds = list(aggregates_of(provenance).values())
    return capped_in_words(kinds, provenance, _leaf(provenance, texts), texts)


def _leaf(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Name a node of the deepest level, if the scales of noise list the levels from the root down."""
    first = next(iter(_quantities(provenance).values()), {})
    levels = [*scales] if isinstance(scales := first.get("noise_scale"), Mapping) else []
    return str(levels[-1]) if levels[1:] and levels[0] == ROOT else texts["capped.leaf"]


def aggregates_of(provenance: Mapping[str, Any]) -> dict[str, Aggregate]:
    """Return what each column that the table shows holds, from its provenance."""
    found = {name: _aggregate(each) for name, each in _quantities(provenance).items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _aggregate(quantity: Mapping[str, Any]) -> Aggregate | None:
    """Return what a column shows, from its provenance; None if the table does not show it."""
    total: Aggregate = "units" if quantity.get("counted") == "units" else "count"
    if isinstance(bounds := quantity.get("bounds"), list):
        total = "signed sum" if any(isinstance(end, float) and end < 0 for end in bounds) else "sum"
    shown: dict[str, Aggregate | None] = {"mean": "mean", "quantiles": "quantile", "not shown": None}
    return shown.get(str(quantity.get("shown")), total)


def undercount_in_words(
    shown: Collection[Aggregate], unit: Hashable, most: object, texts: Texts = ENGLISH
) -> str:
    """Say that rows of a unit beyond `most` are in none of the `shown` numbers; empty without a unit."""
    shown = [each for each in shown if each != "units"]
    if unit is None or not shown:
        return ""
    verbs = {"count": "count", "sum": "sum", "signed sum": "sum", "mean": "mean", "quantile": "quantile"}
    verb = verbs[next(iter(shown))] if len({verbs[each] for each in shown}) == 1 else "several"
    changes = {"signed sum": "differ", "sum": "larger", "count": "higher"}
    totals = [texts[f"undercount.{change}"] for kind, change in changes.items() if kind in shown]
    others = [texts[f"undercount.{kind}s"] for kind in ("mean", "quantile") if kind in shown]
    consequence = texts.joined([*totals[:1], *others])
    return texts.fill(f"undercount.{verb}", n=most, unit=isolated(unit), consequence=consequence)


def capped_in_words(
    shown: Collection[Aggregate], provenance: Mapping[str, Any], leaf: object, texts: Texts = ENGLISH
) -> str:
    """Say how many rows of a unit a node of each level uses, and what is then counted; empty without caps.

    `leaf` names a node of the deepest level.
    """
    most, inner = provenance.get("max_per_leaf"), provenance.get("max_per_node")
    caps = {} if most is None else {leaf: most}
    caps |= dict(reversed([*inner.items()])) if isinstance(inner, Mapping) else {}
    if not caps:
        return ""
    parts = [texts.fill("capped.level", n=cap, level=isolated(level)) for level, cap in caps.items()]
    names = {"leaf": isolated(leaf), "unit": isolated(provenance.get("privacy_unit"))}
    pairs = [texts.fill("capped.pairs", **names)] * (most == 1 and "count" in shown)
    return " ".join([texts.fill("capped", caps=texts.joined(parts)), *pairs])


def risk_in_words(loss: PrivacyLoss, neighbors: str, found: float, texts: Texts = ENGLISH) -> str:
    """Say what an attacker gains: the share found by falsely accusing 5 %, and what a suspicion becomes."""
    facts = {"guess": texts[f"risk.{neighbors}"], "found": _hundredths(found)}
    if loss.kind != "pure" or loss.epsilon is None:
        return texts.fill("risk", **facts)
    return texts.fill("risk.suspicion", **facts, suspicion=_hundredths(suspicion_after(0.01, loss.epsilon)))


def _hundredths(share: float) -> str:
    """Format a share in hundredths, with at least two digits, rounded up."""
    return f"{math.ceil(1000 * share) / 10:g}" if share < 0.1 else f"{math.ceil(100 * share)}"


def _risk(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    loss, neighbors = stated_loss(provenance), provenance.get("neighbors")
    if loss is None or neighbors not in ("add_remove", "replace") or is_repeatable(provenance):
        return []
    return [risk_in_words(loss, neighbors, found_at_most([0.05], loss)[0], texts)]


def hidden_in_words(provenance: Mapping[str, Any], texts: Texts = ENGLISH) -> str:
    """Describe what neighbouring data sets differ in, about those who are protected."""
    neighbors = str(provenance.get("neighbors"))
    known = neighbors in ("add_remove", "replace")
    return texts.fill(f"hidden.{neighbors if known else 'unknown'}", neighbors=isolated(neighbors))


def _drawn(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    """Say how quantiles were drawn, if they were."""
    drawn = texts.get(f"drawn.{provenance.get('mechanism')}")
    if not drawn:
        return []
    binned = "granularity" not in provenance
    facts = {"n": provenance.get("n_bins")} if binned else {"granularity": provenance["granularity"]}
    return [texts.fill("drawn.middles" if binned else "drawn.grid", mechanism=drawn, **facts)]


def _noise(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    """Name the noise; of quantiles that were drawn, that of the trees beside them, if there are any."""
    mechanism = str(provenance.get("mechanism", "unknown"))
    trees = texts.get(f"drawn.{mechanism}") is not None
    if trees and "noise" not in provenance:
        return []
    noise = str(provenance["noise"]) if trees else mechanism
    named = texts.get(f"noise.{noise}") or isolated(noise)
    return [texts.fill("noise.trees" if trees else "noise", noise=named)]


def _charge(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    """Name the charge in a ledger that stands for the release."""
    charge = provenance.get("ledger")
    if not isinstance(charge, Mapping):
        return []
    names = {name: isolated(charge.get(name)) for name in ("account", "part")}
    key = "charge.part" if "part" in charge else "charge"
    return [texts.fill(key, entry=isolated(charge.get("charge")), **names)]


def _rows(provenance: Mapping[str, Any], texts: Texts) -> str:
    private = provenance.get("private_keys")
    stated = provenance.get("domain_source")
    known = stated in ("given", "released", "categories", "observed")
    source = texts[f"source.{stated if known else 'unknown'}"]
    if isinstance(private, list) and stated is not None:
        names = texts.joined([f"“{isolated(name)}”" for name in private])
        return texts.fill("rows.private.some", names=names, source=source)
    if "shown_above" in provenance or "largest_unseen" in provenance:
        return texts["rows.private"]
    return texts.fill("rows.public", source=source)


def _quantities(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the provenance of each column."""
    several = provenance.get("quantities")
    if isinstance(several, Mapping):
        return {str(name): each for name, each in several.items() if isinstance(each, Mapping)}
    return {str(provenance.get("column", "count")): provenance}


def _clipped(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    bounds = {name: each.get("bounds") for name, each in _quantities(provenance).items()}
    binned = provenance.get("shown") == "quantiles" and "granularity" not in provenance
    key = "clipped.bins" if binned else "clipped"
    named = {"n": provenance.get("n_bins")} if binned else {}
    return [
        texts.fill(key, name=isolated(name), lower=_end(ends[0]), upper=_end(ends[1]), **named)
        for name, ends in bounds.items()
        if isinstance(ends, list) and [type(end) for end in ends] in ([float, float], [str, str])
    ]


def _end(bound: float | str) -> str:
    """Format a bound: a number, or a time that is text already."""
    return isolated(bound) if isinstance(bound, str) else f"{bound:,.15g}"


def _known(provenance: Mapping[str, Any], texts: Texts) -> list[str]:
    quantities = _quantities(provenance)
    known = {name: each.get("known") for name, each in quantities.items()}
    named = {ROOT: texts["level.total.inline"]}
    return [
        texts.fill(
            "known.column" if len(quantities) > 1 else "known",
            name=isolated(name),
            levels=texts.joined(
                [
                    texts.fill("known.level", n=n, level=named.get(level) or isolated(level))
                    for level, n in levels.items()
                ]
            ),
        )
        for name, levels in known.items()
        if isinstance(levels, Mapping) and levels
    ]


def is_repeatable(provenance: Mapping[str, Any]) -> bool:
    """Whether the noise can be repeated, so that it protects nobody."""
    return "not private" in str(provenance.get("rng", ""))


def objections(provenance: Mapping[str, Any], texts: Texts = ENGLISH) -> list[str]:
    """List why the table protects nobody, if so."""
    warnings = {"warning.test": is_repeatable(provenance), "warning.useless": _is_useless(provenance)}
    return [texts[warning] for warning, applies in warnings.items() if applies]


def joined(words: Sequence[str]) -> str:
    """Join words: a, b and c."""
    return ENGLISH.joined(list(words))
