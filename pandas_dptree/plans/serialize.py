"""Plans as plain JSON: the format that all kinds share, their digest, and safe reading."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, DomainError, DPTreeError, kind_of_object, listed, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import SOURCES, Domain, Source, fingerprint
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.privacy.caps import caps_from_json
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import Quantity

__all__ = [
    "FORMAT",
    "check_digest",
    "check_same_content",
    "choice",
    "digest_of",
    "fingerprint_of",
    "kind_of",
    "level_sizes",
    "name",
    "plain",
    "quantity_from_json",
    "quantity_to_json",
    "read",
    "restored",
]

Kind = TypeVar("Kind")
Made = TypeVar("Made")
LabelledT = TypeVar("LabelledT", bound=Domain | CrossedDomain)

FORMAT = "pandas_dptree plan, version 3"
_UNSEALED = ("digest", "version")
"""The entries that the digest does not cover: the digest itself, and the version that made the plan."""
_ROUNDING = 2.0**-44
"""How far, relatively, a number computed anew may be from the written one: processors round differently."""
_HINT = "pass the result of a plan's to_dict()."
_AS_WRITTEN = "use the file as it was written, or make a new plan and have it approved."
_OF_EARLIER_VERSIONS = (
    "A plan of an earlier version may spend more than a stated decimal such as 0.1: make it again."
)


def name(argument: str, column: Hashable) -> str | int | None:
    """Return the name of a column, or raise ArgumentError if plain JSON cannot hold it."""
    if column is None or isinstance(column, (str, int)):
        return column
    raise ArgumentError(
        argument, f"cannot be serialized: {quote(column)}.", hint="rename the column to a string."
    )


def choice(value: Any, choices: tuple[Any, ...]) -> Any:
    """Return the choice that is equal to a value from JSON, or raise ValueError if there is none."""
    return choices[choices.index(value)]


def fingerprint_of(hierarchy: Any) -> str | None:
    """Hash a public hierarchy, so that it can be recognized later; None stays None."""
    if isinstance(hierarchy, PrefixTree):
        return hashlib.sha256(ascii(hierarchy.definition).encode()).hexdigest()
    return None if hierarchy is None else fingerprint(hierarchy)


def level_sizes(hierarchy: Any) -> list[int] | None:
    """Return the number of rows that a table has on each level; None if that is not public."""
    if not isinstance(hierarchy, (Domain, CrossedDomain, Tree)):
        return None
    tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
    return [tree.n_listed(level) for level in range(tree.depth + 1)]


def plain(levels: npt.NDArray[np.float64]) -> list[list[float | None]]:
    """Return the number of each level as plain JSON, in a list of its own, with None for inf."""
    return [[None if number == math.inf else number] for number in levels.tolist()]


def restored(levels: Any) -> npt.NDArray[np.float64]:
    """Restore what `plain` serialized."""
    numbers = [math.inf if number is None else number for (number,) in levels]
    return np.array(numbers, dtype=np.float64)


def quantity_to_json(quantity: Quantity) -> dict[str, Any]:
    """Serialize what is added up."""
    return {
        "column": name("column", quantity.column),
        "low": quantity.low,
        "high": quantity.high,
        "unit": list(quantity.unit.as_integer_ratio()),
        "shift": quantity.shift,
    }


def quantity_from_json(data: Mapping[str, Any]) -> Quantity:
    """Restore what `quantity_to_json` serialized."""
    return Quantity(**{**data, "unit": Fraction(*data["unit"])})


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a description, in 64 hexadecimal digits.

    It is that of the description as JSON text without its entries `digest` and `version`: with sorted keys,
    no spaces, ASCII escapes, and floats in the shortest form that reads back as the same number. Raises
    TypeError or ValueError if the description is not plain JSON.
    """
    sealed = {key: value for key, value in content.items() if key not in _UNSEALED}
    return hashlib.sha256(_canonical(sealed).encode("ascii")).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def check_digest(data: Mapping[str, Any], approved: Any) -> None:
    """Check that a description has the digest that it states, and the approved one, if there is one."""
    stated = data.get("digest")
    try:
        found = digest_of(data)
    except (TypeError, ValueError, RecursionError):
        found = ""
    if not found or stated != found:
        raise ArgumentError(
            "data",
            "has changed since the plan was written: it does not have the digest that it states.",
            hint=_AS_WRITTEN,
        )
    if approved is not None and not (isinstance(approved, str) and approved.strip().lower() == found):
        raise ArgumentError(
            "digest",
            f"is not that of this plan, which has the digest {found}.",
            hint="release the plan that was approved, or have this one approved; pass all 64 digits.",
        )


def check_same_content(data: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Check that a plan that was read has the content of its description, up to the rounding of processors.

    So nothing in a description is ignored, completed or converted. Raises an ArgumentError that names `data`.
    """
    unknown = data.keys() - content.keys() - {*_UNSEALED}
    if unknown:
        raise ArgumentError(
            "data",
            f"is not a plan of this version: it has unknown entries: {listed(sorted(unknown))}.",
            hint="use the file as it was written, with the version of pandas_dptree that wrote it.",
        )
    differing = [key for key in content if key not in data or not _same(data[key], content[key])]
    if differing:
        raise ArgumentError(
            "data",
            f"is not a valid plan: these entries do not follow from the others: {listed(differing)}.",
            hint="use the file as it was written. If another version wrote it, make a new plan, and have it "
            "approved.",
        )


def _same(stored: Any, found: Any) -> bool:
    """Whether two values of plain JSON are equal, floats up to rounding."""
    if isinstance(stored, float) and isinstance(found, float):
        return math.isclose(stored, found, rel_tol=_ROUNDING)
    if isinstance(stored, Mapping) and isinstance(found, Mapping):
        return stored.keys() == found.keys() and all(_same(stored[key], found[key]) for key in found)
    if isinstance(stored, list) and isinstance(found, list):
        return len(stored) == len(found) and all(map(_same, stored, found))
    return _canonical(stored) == _canonical(found)


def kind_of(data: Any, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of plan that is described, or raise ArgumentError if there is none."""
    stated = data.get("format") if isinstance(data, Mapping) else None
    if not isinstance(stated, str) or stated != FORMAT:
        raise ArgumentError(
            "data",
            "is not a plan of this version.",
            hint="if an older version wrote it, make the plan again, and have it approved again. In Python, "
            "pass the result of a plan's to_dict(), or json.loads of the text of its file.",
        )
    found = data.get("kind")
    if not isinstance(found, str) or found not in kinds:
        raise ArgumentError("data", "is not a valid plan: its kind is unknown.", hint=_HINT)
    return kinds[found]


def read(make: Callable[..., Made], data: Mapping[str, Any], hierarchy: Any) -> Made:
    """Make a plan from its description `data` and the hierarchy that it was made for.

    `make` takes the description, the hierarchy, and as keywords the attributes that all plans have. Raises
    DomainError for another hierarchy, and ArgumentError if the description is incomplete or contradictory.
    """
    known = hierarchy is None or isinstance(hierarchy, (Domain, CrossedDomain, Tree, PrefixTree))
    if not known or (hierarchy is None and data.get("domain") is not None):
        raise DomainError(
            f"must be the one that this plan was made for, not {kind_of_object(hierarchy)}.",
            hint="make it from the same public keys with dpt.Domain.from_frame(places, by=[...]).",
        )
    if not known or "domain" not in data or fingerprint_of(hierarchy) != data["domain"]:
        raise DomainError(
            "is not the one that this plan was made for.",
            hint="load the same public keys, as the same types (from a CSV file, keys are text); "
            "if they have changed since, make a new plan.",
        )
    try:
        if data["max_contributions"] is None:  # arguments may leave it to a default, a file may not
            raise ValueError("max_contributions is null")
        if isinstance(hierarchy, (Domain, CrossedDomain)):
            hierarchy = _as_recorded(hierarchy, choice(data["domain_source"], SOURCES))
        return make(
            data,
            hierarchy,
            loss=PrivacyLoss(**data["loss"]),
            neighbors=data["neighbors"],
            privacy_unit=name("privacy_unit", data["privacy_unit"]),
            max_contributions=data["max_contributions"],
            caps=caps_from_json(data, data["levels"]),
        )
    except DomainError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        fact = error.fact if isinstance(error, DPTreeError) else f"{error!r}."
        raise ArgumentError(
            "data", f"is not a valid plan: {fact}", hint=f"{_AS_WRITTEN} {_OF_EARLIER_VERSIONS}"
        ) from None


def _as_recorded(domain: LabelledT, source: Source) -> LabelledT:
    """Return the domain with the source of keys that the plan states.

    So a plan for observed keys still states that they were observed, even if they are given as a list now.
    Raises DomainError if the keys are less certain to be public than the plan states.
    """
    if SOURCES.index(domain.source) > SOURCES.index(source):
        raise DomainError(
            f"has the source {quote(domain.source)}, but the plan was made for keys with the source "
            f"{quote(source)}.",
            hint="make it from the list of public keys that the plan was made for, with "
            "dpt.Domain.from_frame(places, by=[...]).",
        )
    return domain if domain.source == source else dataclasses.replace(domain, source=source)
