"""The protection of a release in words, from the provenance that its table states."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.risk import found_at_most, suspicion_after

__all__ = [
    "UNKNOWN_SOURCE",
    "Aggregate",
    "hidden_in_words",
    "joined",
    "loss_in_words",
    "objections",
    "risk_in_words",
    "statement",
    "undercount",
    "undercount_in_words",
]

Aggregate = Literal["count", "sum", "signed sum", "mean"]
"""What a column shows of the rows of a unit; a signed sum may have negative terms."""

UNKNOWN_SOURCE = "unknown"
"""The source of noise, if a plan alone tells how a table was made."""


def statement(provenance: Mapping[str, Any]) -> list[str]:
    """Describe the protection of a release in sentences of plain text.

    `provenance` is from ``attrs["dp"]`` of a released table; it is empty if that was lost.
    """
    if not provenance:
        return ["It is unknown how this table was made and what protects it: the table does not say."]
    protection = loss_in_words(provenance) + ", which protects nobody" * _is_useless(provenance)
    return [
        f"Protection: none. If the noise had been secret, it would be {protection}."
        if _repeatable(provenance)
        else f"Protection: {protection}.",
        _unit(provenance),
        hidden_in_words(provenance),
        *_risk(provenance),
        _rows(provenance),
        *_clipped(provenance),
        *_known(provenance),
        _noise(provenance),
        *_plan(provenance),
        *_charge(provenance),
        f"Released with pandas_dptree {provenance.get('version', '(version unknown)')}. The guarantee holds "
        "for the whole table at once, and for all that is computed from it. Other releases of the same "
        "records add to the loss.",
    ]


def loss_in_words(provenance: Mapping[str, Any]) -> str:
    """Describe a privacy loss in full."""
    epsilon, delta, rho = (provenance.get(name) for name in ("epsilon", "delta", "rho"))
    if rho is not None and delta:
        return f"approximate zero-concentrated differential privacy with ρ = {rho} and δ = {delta}"
    if rho is not None:
        return f"zero-concentrated differential privacy with ρ = {rho}"
    if epsilon is None:
        return "differential privacy, with a loss that is unknown"
    if delta:
        return f"approximate differential privacy with ε = {epsilon} and δ = {delta}"
    return f"pure differential privacy with ε = {epsilon}"


def _is_useless(provenance: Mapping[str, Any]) -> bool:
    loss = _loss(provenance)
    return loss is not None and bool(loss.objection)


def _loss(provenance: Mapping[str, Any]) -> PrivacyLoss | None:
    """Return the loss that is stated; None if it is no valid one."""
    names = ("epsilon", "delta", "rho")
    try:
        return PrivacyLoss(**{name: provenance[name] for name in names if provenance.get(name) is not None})
    except ArgumentError:
        return None


def _unit(provenance: Mapping[str, Any]) -> str:
    if "privacy_unit" not in provenance:
        return "Who is protected: unknown."
    unit, most = provenance["privacy_unit"], provenance.get("max_contributions", "an unknown number of")
    rows = "record of each was" if most == 1 else "records of each were"
    if unit is not None:
        return (
            f"Who is protected: everyone named in the column “{unit}”, with all of their records. "
            f"At most {most} {rows} counted, chosen at random."
        )
    if most == 1:
        return "Who is protected: each single record. Anyone with several records is protected less."
    return f"Who is protected: everyone who has at most {most} records."


def undercount(provenance: Mapping[str, Any]) -> str:
    """Say that the rows of a unit beyond the bound are missing in a table; empty if it has no unit."""
    if not isinstance(unit := provenance.get("privacy_unit"), str):
        return ""
    kinds = [_aggregate(each) for each in _quantities(provenance).values()]
    return undercount_in_words(list(filter(None, kinds)), unit, provenance.get("max_contributions"))


def _aggregate(quantity: Mapping[str, Any]) -> Aggregate | None:
    """Return what a column shows, from its provenance; None if the table does not show it."""
    total: Aggregate = "count"
    if isinstance(bounds := quantity.get("bounds"), list):
        total = "signed sum" if any(isinstance(end, float) and end < 0 for end in bounds) else "sum"
    return {"mean": "mean", "not shown": None}.get(str(quantity.get("shown")), total)


def undercount_in_words(shown: Collection[Aggregate], unit: Hashable, most: object) -> str:
    """Say that rows of a unit beyond `most` are in none of the `shown` numbers; empty without a unit."""
    if unit is None:
        return ""
    verbs = {"count": "Counts", "sum": "Adds up", "signed sum": "Adds up", "mean": "Averages"}
    verb = verbs[next(iter(shown))] if len({verbs[each] for each in shown}) == 1 else "Uses"
    changes = {"signed sum": "differ", "sum": "be larger", "count": "be higher"}
    totals = [f"real totals can {change}" for kind, change in changes.items() if kind in shown]
    means = ["means of all rows can differ"] * ("mean" in shown)
    rows = "row" if most == 1 else "rows"
    return f"{verb} at most {most} {rows} of each {unit}: {joined([*totals[:1], *means])}."


def risk_in_words(loss: PrivacyLoss, neighbors: str, found: float) -> str:
    """Say what an attacker gains: the share found by falsely accusing 5 %, and what a suspicion becomes."""
    guess = "whether one of those protected is in the data"
    if neighbors == "replace":
        guess = "which records one of those protected has"
    suspicion = ""
    if loss.kind == "pure" and loss.epsilon is not None:
        suspicion = (
            f"; a suspicion of 1 % becomes at most {_hundredths(suspicion_after(0.01, loss.epsilon))} %"
        )
    return (
        f"What an attacker gains who knows everything else, and guesses {guess}: falsely accusing 5 of 100, "
        f"they find at most {_hundredths(found)} of 100{suspicion}."
    )


def _hundredths(share: float) -> str:
    """Format a share in hundredths, with at least two digits, rounded up."""
    return f"{math.ceil(1000 * share) / 10:g}" if share < 0.1 else f"{math.ceil(100 * share)}"


def _risk(provenance: Mapping[str, Any]) -> list[str]:
    loss, neighbors = _loss(provenance), provenance.get("neighbors")
    if loss is None or neighbors not in ("add_remove", "replace") or _repeatable(provenance):
        return []
    return [risk_in_words(loss, neighbors, found_at_most([0.05], loss)[0])]


def hidden_in_words(provenance: Mapping[str, Any]) -> str:
    """Describe what neighbouring data sets differ in, about those who are protected."""
    neighbors = provenance.get("neighbors")
    hidden = {  # about those whom the line before names
        "add_remove": "whether one of them is in the data at all (neighbours by addition or removal)",
        "replace": "what the records of one of them are, but not how many of them there are (neighbours by "
        "replacement)",
    }.get(str(neighbors))
    return "What is hidden: " + (hidden or f"unknown ({neighbors})") + "."


def _noise(provenance: Mapping[str, Any]) -> str:
    mechanism = str(provenance.get("mechanism", "unknown"))
    noise = {
        **{name: noise.description for name, noise in NOISES.items()},
        "truncated_laplace": "truncated discrete Laplace; shown are nodes whose noisy count is large",
        "gaussian_thresholds": "discrete Gaussian; shown are nodes whose noisy count is large and whose "
        "parent is shown",
        "multiplicative": "truncated discrete Laplace, before each comparison with a threshold",
    }.get(mechanism, mechanism)
    return f"Noise: {noise}."


def _plan(provenance: Mapping[str, Any]) -> list[str]:
    """State the digest of the plan; and if the provenance is that of a plan, what it cannot say."""
    digest, source = provenance.get("digest"), provenance.get("rng")
    stated = [f"Plan: SHA-256 {digest}."] if digest else []
    secrecy = "Whether the noise was secret: unknown. This description is taken from the plan, not the table."
    return stated + [secrecy] * (source == UNKNOWN_SOURCE)


def _charge(provenance: Mapping[str, Any]) -> list[str]:
    """Name the charge in a ledger that stands for the release."""
    charge = provenance.get("ledger")
    if not isinstance(charge, Mapping):
        return []
    part = f", part “{charge['part']}”" if "part" in charge else ""
    return [
        f"Charged to the account “{charge.get('account')}”{part}, which limits the loss of all its releases "
        f"together: entry {charge.get('charge')} of the ledger, SHA-256 {charge.get('digest')}."
    ]


def _rows(provenance: Mapping[str, Any]) -> str:
    private = provenance.get("private_keys")
    if isinstance(private, list) and provenance.get("domain_source") is not None:
        names = joined([f"“{name}”" for name in private])
        return (
            f"Which rows the table has: by {names}, protected like its values; for the other keys, not "
            f"protected. {_source(provenance)}"
        )
    if "shown_above" in provenance or "largest_unseen" in provenance:
        return "Which rows the table has: protected like its values."
    return f"Which rows the table has: not protected. {_source(provenance)}"


def _source(provenance: Mapping[str, Any]) -> str:
    """Describe where the keys came from."""
    return {
        "given": "The publisher provided the list of them, as public.",
        "released": "They are the keys of an earlier released table, whose privacy loss is not included.",
        "categories": "They are the categories of the keys, which the publisher declared public.",
        "observed": "They are the keys in the records, which the publisher declared public.",
    }.get(str(provenance.get("domain_source")), "The publisher declared the list of them public.")


def _quantities(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the provenance of each column."""
    several = provenance.get("quantities")
    if isinstance(several, Mapping):
        return {str(name): each for name, each in several.items() if isinstance(each, Mapping)}
    return {str(provenance.get("column", "count")): provenance}


def _clipped(provenance: Mapping[str, Any]) -> list[str]:
    bounds = {name: each.get("bounds") for name, each in _quantities(provenance).items()}
    return [
        f"Values of “{name}” were clipped to between {ends[0]:,.15g} and {ends[1]:,.15g}, and rounded."
        for name, ends in bounds.items()
        if isinstance(ends, list) and [type(end) for end in ends] == [float, float]
    ]


def _known(provenance: Mapping[str, Any]) -> list[str]:
    quantities = _quantities(provenance)
    known = {name: each.get("known") for name, each in quantities.items()}
    return [
        "Public beforehand, and shown without noise"
        + (f", of “{name}”: " if len(quantities) > 1 else ": ")
        + joined([f"{n} of the level {level}" for level, n in levels.items()])
        + "."
        for name, levels in known.items()
        if isinstance(levels, Mapping) and levels
    ]


def _repeatable(provenance: Mapping[str, Any]) -> bool:
    return "not private" in str(provenance.get("rng", ""))


def objections(provenance: Mapping[str, Any]) -> list[str]:
    """List why the table protects nobody, if so."""
    warnings = {
        "This table is a test. Its noise came from a generator that can be repeated: it protects "
        "nobody.": _repeatable(provenance),
        "The privacy loss of this table is so large that it protects nobody.": _is_useless(provenance),
    }
    return [warning for warning, applies in warnings.items() if applies]


def joined(words: Sequence[str]) -> str:
    """Join words: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
