"""What every plan has: a privacy loss, whom it protects, what it says of itself, and its form in JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain, Source, fingerprint, level_names, source_of
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.prefixes import check_prefixes
from pandas_dptree.plans import serialize
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import check_rows_of_records, protected

__all__ = ["FORMATS", "Plan", "PrefixPlan", "TreePlan", "read_only"]

FORMATS: dict[str, Callable[[float], str]] = {
    "share": "{:.3f}".format,
    **dict.fromkeys(("epsilon", "delta", "noise_scale", "std_error"), "{:.4g}".format),
}
"""How the columns of a plan's table are printed."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(ABC):
    """A release, described before it happens.

    A plan is a function of public arguments alone: it can be printed, compared, approved and stored before
    any budget is spent, and released as often as the budget allows. Whom it protects is checked when it is
    made. This class is what all kinds of plans have in common; `pandas_dptree.plan` and its siblings make
    them.

    Attributes
    ----------
    loss : PrivacyLoss
        The privacy loss of one release.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets.
    privacy_unit : hashable or None
        The column that names whom to protect; None where each row is a unit of its own.
    max_contributions : int
        How many rows of a unit are counted.

    Examples
    --------
    A plan of any kind is read from JSON by this class:

    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([2, 3])
    >>> stored = dpt.plan(tree, epsilon=1.0).to_dict()
    >>> type(dpt.Plan.from_dict(stored, tree)).__name__
    'AdditivePlan'
    """

    kind: ClassVar[str]
    """What JSON calls this kind of plan."""
    kinds: ClassVar[dict[str, type[Plan]]] = {}
    """All kinds of plans that can be read, by what JSON calls them."""
    _most_rows: ClassVar[int | None] = None
    """How many rows of its table are printed."""

    loss: PrivacyLoss
    neighbors: Neighbors = "add_remove"
    privacy_unit: Hashable | None
    max_contributions: int

    def __init_subclass__(cls) -> None:
        """List a kind of plan among those that can be read."""
        if "kind" in vars(cls):
            Plan.kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        """Check whom the plan protects."""
        unit, most = protected(self.privacy_unit, self.max_contributions, taken=self.columns_counted)
        object.__setattr__(self, "privacy_unit", unit)
        object.__setattr__(self, "max_contributions", most)

    # Whom it protects, and what it costs

    @property
    @abstractmethod
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""

    @property
    def columns_counted(self) -> Collection[Hashable]:
        """Columns that say where a row is counted, so that none of them can be the privacy unit."""
        return self.level_names[1:]

    @property
    def epsilon(self) -> float | None:
        """The epsilon of one release; None for a zero-concentrated loss."""
        return self.loss.epsilon

    @property
    def delta(self) -> float:
        """The delta of one release."""
        return self.loss.delta

    @property
    def rho(self) -> float | None:
        """The rho of one release; None unless the loss is zero-concentrated."""
        return self.loss.rho

    # What it says of itself

    @property
    @abstractmethod
    def headline(self) -> str:
        """The release in a sentence."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Lay the plan out as a frame."""

    @property
    def protection(self) -> str:
        """The privacy loss and whom it protects, in words for a headline."""
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        return f"{self.loss.in_words}, protecting {unit} ({self._rows}, {self.neighbors})"

    @property
    def _rows(self) -> str:
        return "1 row" if self.max_contributions == 1 else f"up to {self.max_contributions} rows"

    @property
    def remark(self) -> str:
        """What is printed below the table of the plan; nothing for most kinds."""
        return ""

    def __repr__(self) -> str:
        """Print the plan as a table."""
        table = self.to_frame().to_string(
            index=False, formatters=self._formats, max_rows=self._most_rows, na_rep="-"
        )
        return "\n".join(filter(None, [self.headline, table, self.remark]))

    def _repr_html_(self) -> str:
        """Show the plan as a table in a notebook."""
        table = self.to_frame().to_html(
            index=False, formatters=self._formats, border=0, max_rows=self._most_rows, na_rep="-"
        )
        remark = self.remark and f"<p>{escape(self.remark)}</p>"
        return "\n".join(filter(None, [f"<p>{escape(self.headline)}</p>", table, remark]))

    @property
    def _formats(self) -> dict[Any, Any]:
        return FORMATS

    def provenance(self, rng: np.random.Generator | None = None) -> dict[str, Any]:
        """Describe how a release by this plan is made: what a table carries in ``attrs["dp"]``.

        Parameters
        ----------
        rng : numpy.random.Generator, optional
            The source of noise, if it is not the operating system's.

        Returns
        -------
        dict
            Plain JSON. It is for display, and proves nothing.
        """
        return {
            "mechanism": self.mechanism_name,
            **self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": None if self.privacy_unit is None else str(self.privacy_unit),
            "max_contributions": self.max_contributions,
            "domain_source": self.domain_source,
            **self._manner(),
            "rng": "operating system" if rng is None else "numpy.random.Generator: not private",
            "version": __version__,
        }

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """The mechanism, as ``attrs`` and JSON name it."""

    @property
    @abstractmethod
    def domain_source(self) -> Source | None:
        """Where the public keys came from; None where no keys are public."""

    @abstractmethod
    def _manner(self) -> Mapping[str, Any]:
        """Describe in plain JSON what only this kind of plan says of a release."""

    # What is done with it

    @abstractmethod
    def release(self, data: Any, *, rng: np.random.Generator | None = None, progress: bool = False) -> Any:
        """Spend the budget: measure the data, and return what is released.

        Parameters
        ----------
        data : dataframe or numpy.ndarray
            The records, one row each; some kinds of plans take exact counts as well.
        rng : numpy.random.Generator, optional
            Makes the release repeatable, for tests and simulation: it is then not private. By default
            all randomness comes from the operating system's cryptographic source.
        progress : bool, default False
            Shows the steps on a bar, on standard error. Needs tqdm.
        """

    @abstractmethod
    def compare(self) -> pd.DataFrame:
        """Compare the ways in which the same privacy loss could be spent on the same release."""

    # JSON

    @property
    @abstractmethod
    def hierarchy(self) -> Any:
        """The public description of what is counted where, which is needed to read the plan again."""

    @abstractmethod
    def _fields(self) -> Mapping[str, Any]:
        """Describe in plain JSON what only this kind of plan has."""

    @classmethod
    @abstractmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Any, **common: Any) -> Self:
        """Make a plan of what `_fields` described, and of what all plans have."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan in plain JSON, to be approved today and released tomorrow.

        Returns
        -------
        dict
            Numbers, strings, lists and dicts alone; the labels of the domain are not in it, only a
            fingerprint of them.
        """
        return {
            "format": serialize.FORMAT,
            "kind": self.kind,
            "version": __version__,
            "domain": serialize.fingerprint_of(self.hierarchy),
            "domain_source": self.domain_source,
            "levels": [str(name) for name in self.level_names],
            "loss": self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": serialize.name("privacy_unit", self.privacy_unit),
            "max_contributions": self.max_contributions,
            "mechanism": self.mechanism_name,
            **self._fields(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], domain: Any = None) -> Self:
        """Read a plan of this kind from `to_dict`; ``Plan.from_dict`` reads a plan of any kind.

        The noise is computed anew from the loss and the shares, so a plan that was tampered with still
        spends no more than the loss that it states, on the privacy unit that it states: look at both
        before releasing. Where the keys came from is the less certain of what the plan and `domain` say: a
        plan for observed keys stays one, although the same keys are given as a list now.

        Parameters
        ----------
        data : mapping
            From `to_dict`, perhaps by way of JSON.
        domain : Domain, Tree, BitPrefixes, CharPrefixes or None
            The one that the plan was made for: its `hierarchy`.

        Returns
        -------
        Plan

        Raises
        ------
        DomainError
            If the domain is another one.
        ArgumentError
            If `data` is no plan, or one of another kind.
        """
        found = serialize.kind_of(data, cls.kinds)
        if not issubclass(found, cls):
            raise ArgumentError(
                "data",
                f"is of kind {found.__name__}, not {cls.__name__}.",
                hint=f"read it with {found.__name__}.from_dict; Plan.from_dict reads plans of all kinds.",
            )
        plan: Self = serialize.read(found._from_fields, data, domain)
        serialize.check_same("mechanism", data.get("mechanism"), plan.mechanism_name)
        return plan


def read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array of a plan, so that nobody can change what was checked."""
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TreePlan(Plan):
    """A plan for the nodes of a tree that is listed.

    Attributes
    ----------
    tree : Tree
        The shape of the hierarchy.
    domain : Domain or None
        Its labels; None for a plan of numbers alone.
    """

    tree: Tree
    domain: Domain | None

    def __post_init__(self) -> None:
        """Check that the labels are those of the tree, and whom the plan protects."""
        tree = self.tree if self.domain is None else self.domain.tree
        if tree is not self.tree and fingerprint(tree) != fingerprint(self.tree):
            raise ArgumentError(
                "domain", "is of another shape than the tree of the plan.", hint="pass tree=domain.tree."
            )
        super().__post_init__()

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return level_names(self.hierarchy)

    @property
    def hierarchy(self) -> Domain | Tree:
        """The domain; for a plan of numbers alone, the tree."""
        return self.domain or self.tree

    @property
    def domain_source(self) -> Source:
        """Where the public keys came from."""
        return source_of(self.domain)

    @cached_property
    def labelled(self) -> Domain:
        """The domain; for a plan of numbers alone, one that numbers the nodes."""
        return self.domain or Domain.from_tree(self.tree)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrefixPlan(Plan):
    """A plan for a tree of all prefixes, which is too large to be listed.

    Attributes
    ----------
    tree : BitPrefixes or CharPrefixes
        The tree.
    """

    tree: PrefixTree

    def __post_init__(self) -> None:
        """Check the tree, and whom the plan protects."""
        check_prefixes(self.tree)
        super().__post_init__()
        check_rows_of_records(self.privacy_unit, self.max_contributions)

    @property
    def columns_counted(self) -> tuple[Hashable, ...]:
        """The column that says where a row is counted."""
        return (self.tree.column,)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, from the root down."""
        return self.tree.level_names

    @property
    def hierarchy(self) -> PrefixTree:
        """The tree."""
        return self.tree

    @property
    def domain_source(self) -> None:
        """None: nobody lists the keys, and which nodes a table shows is protected."""
        return None
