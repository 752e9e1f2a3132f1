"""The base classes of plans: privacy loss, privacy unit, display and JSON."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Generic, Self, TypeVar, Unpack

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Source
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.ingest.tallies import Tally
from pandas_dptree.old_names import with_old_names
from pandas_dptree.output.protection import (
    Aggregate,
    capped_in_words,
    risk_in_words,
    undercount_in_words,
)
from pandas_dptree.plans import serialize
from pandas_dptree.plans.losses import LevelItem, Losses
from pandas_dptree.plans.options import RUNNING, Running, takes, with_defaults
from pandas_dptree.plans.risk import Risk
from pandas_dptree.plans.running import Origin, Release, Resources, carry_out, checked_folder
from pandas_dptree.plans.secret_check import SecretCheck, checked
from pandas_dptree.privacy.caps import Caps, caps_to_json, check_caps
from pandas_dptree.privacy.level_losses import LevelLoss
from pandas_dptree.privacy.loss import PrivacyLoss, ungated_loss
from pandas_dptree.privacy.risk import found_at_most
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import protected

__all__ = ["FORMATS", "Plan", "not_measured"]

Released = TypeVar("Released", covariant=True)

FORMATS: dict[str, Callable[[float], str]] = {
    "share": lambda share: f"{share:.3f}" if share else "-",
    **dict.fromkeys(
        ("noise_scale", "excess_noise_scale"),
        lambda scale: f"{scale:.4g}" if math.isfinite(scale) else "-",
    ),
    **dict.fromkeys(("epsilon", "delta", "std_error", "half_width"), "{:.4g}".format),
}
"""How to format the columns of a plan's table; a level that is not measured has no share and no noise."""


def not_measured(levels: Sequence[str]) -> str:
    """Say which levels are not measured; empty if there are none."""
    return f"Not measured; from the levels below: {', '.join(levels)}." if levels else ""


@with_old_names("plan")
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan(ABC, Generic[Released]):
    """A release, described before it happens.

    A plan is a function of public arguments alone. It can be printed, compared, approved and stored before
    any budget is spent, and released as often as the budget allows. This is the base class of all kinds of
    plans; `pandas_dptree.plan` and its siblings make them.

    Attributes
    ----------
    loss : PrivacyLoss
        The privacy loss of one release.
    neighbors : {"add_remove", "replace"}
        How neighbouring data sets differ.
    privacy_unit : hashable or None
        The column that identifies whom to protect; None if each row is a unit of its own.
    max_contributions : int
        The maximum number of rows of a unit that are counted.
    caps : tuple of int or None
        Likewise in a node of each level, None where there is no such bound; empty if no level has one.

    Examples
    --------
    This class reads plans of all kinds from JSON:

    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([2, 3])
    >>> stored = dpt.plan(tree, epsilon=1.0).to_dict()
    >>> type(dpt.Plan.from_dict(stored, tree)).__name__
    'AdditivePlan'
    """

    kind: ClassVar[str]
    """The name of this kind of plan in JSON."""
    _kinds: ClassVar[dict[str, type[Plan[Any]]]] = {}
    """All kinds of plans that can be read, by their names in JSON."""
    _takes_rho_with_delta: ClassVar[bool] = False
    """Whether the loss may be a rho with a delta: only for releases gated by Gaussian thresholds."""
    _takes_caps: ClassVar[bool] = False
    """Whether the rows of a unit may be bounded in each node of a level."""
    _max_rows: ClassVar[int | None] = None
    """How many rows of the plan's table to print; None for all."""

    loss: PrivacyLoss
    neighbors: Neighbors = "add_remove"
    privacy_unit: Hashable | None
    max_contributions: int
    caps: Caps = ()

    def __init_subclass__(cls) -> None:
        """Register the kind of plan, so that it can be read from JSON."""
        if "kind" in vars(cls):
            Plan._kinds[cls.kind] = cls

    def __post_init__(self) -> None:
        """Check the kind of the loss, and the privacy unit."""
        if not self._takes_rho_with_delta:
            ungated_loss(self.loss)
        unit, most = protected(self.privacy_unit, self.max_contributions, taken=self._columns_used)
        object.__setattr__(self, "privacy_unit", unit)
        object.__setattr__(self, "max_contributions", most)
        if self.caps and not self._takes_caps:
            raise ArgumentError(
                "max_per_leaf",
                "and `max_per_node` have no meaning for a plan of this kind.",
                hint="bound the rows of a unit by max_contributions alone.",
            )
        object.__setattr__(self, "caps", check_caps(self.caps, len(self.level_names), unit))

    # Privacy

    @property
    def max_per_leaf(self) -> int | None:
        """The maximum number of rows of a unit that are counted in a leaf; None if not bounded."""
        return self.caps[-1] if self.caps else None

    @property
    def max_per_node(self) -> dict[Hashable, int] | None:
        """Likewise in a node of each other level that has such a bound, by name; None if none has."""
        inner = zip(self.level_names, self.caps[:-1], strict=False)
        return {name: cap for name, cap in inner if cap is not None} or None

    @property
    @abstractmethod
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""

    @property
    def _columns_used(self) -> Collection[Hashable]:
        """Columns that decide where and how a row is counted; none of them can be the privacy unit."""
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

    @cached_property
    def losses(self) -> Losses:
        """What the noise of one release spends, level by level, as an epsilon and as a rho.

        In the currency that the plan states, the total is what it states. In the other it is the sum over the
        levels, which is less than what the stated loss implies. See `Losses`.
        """
        return Losses(stated=self.loss, items=tuple(self._loss_items()), together=self._loss_together())

    @abstractmethod
    def _loss_items(self) -> Iterable[LevelItem]:
        """List what each level spends at most."""

    def _loss_together(self) -> LevelLoss | None:
        """Return what all of them spend together at most; None for their sum."""
        return None

    def risk(self, falsely_accused: float | Sequence[float] = (0.001, 0.01, 0.05, 0.1, 0.2)) -> Risk:
        """Bound what an attacker gains by one release, who knows everything but one privacy unit.

        Parameters
        ----------
        falsely_accused : float or sequence of float
            Shares, each between 0 and 1, of the innocent that the attacker accuses: of units that are not in
            the data or, if ``neighbors="replace"``, whose rows are not those that the attacker suspects.

        Returns
        -------
        Risk
            For each share, the largest share of the others that the attacker finds, rounded up; and, under
            pure epsilon alone, the largest probability that a suspicion of this size becomes.

        Raises
        ------
        ArgumentError
            If a share is not between 0 and 1.

        Notes
        -----
        The bounds follow from the loss and, with Gaussian noise or an epsilon and a delta, from the noise
        (`pandas_dptree.privacy.risk` has the proofs).

        **Privacy**: public; spends nothing. If neighbours differ by one unit more or fewer, telling two
        versions of a unit's rows apart is bounded by twice the epsilon.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0)
        >>> plan.risk([0.05]).to_frame().round(3).to_dict("list")  # doctest: +NORMALIZE_WHITESPACE
        {'falsely_accused': [0.05], 'found_at_most': [0.136],
         'suspicion': [0.05], 'becomes_at_most': [0.125]}
        """
        asked = tuple(falsely_accused) if isinstance(falsely_accused, Iterable) else (falsely_accused,)
        *found, usual = found_at_most([*asked, 0.05], self.loss, self._certified_delta)
        return Risk(
            loss=self.loss,
            neighbors=self.neighbors,
            falsely_accused=asked,
            found=tuple(found),
            sentence=risk_in_words(self.loss, self.neighbors, usual),
        )

    def _certified_delta(self, epsilon: float) -> float:
        """Return a delta of a release at an epsilon, rounded up; 1 if only the loss is known."""
        return 1.0

    # Description

    @property
    @abstractmethod
    def _measured(self) -> str:
        """What is released of each node, in a few words."""

    @property
    def subject(self) -> str:
        """What is released, and by which keys, in a few words: a ledger lists releases by it."""
        keys = ", ".join(map(str, self.level_names[1:]))
        return f"{self._measured} by {keys}" if keys else self._measured

    @property
    @abstractmethod
    def _release_in_words(self) -> str:
        """The release in one sentence, without a full stop."""

    @property
    def headline(self) -> str:
        """The release in one sentence; with a privacy unit, a second says that real totals can be higher."""
        undercount = undercount_in_words(self._aggregates, self.privacy_unit, self.max_contributions)
        written = {"privacy_unit": self.privacy_unit, **caps_to_json(self.caps, self.level_names)}
        capped = capped_in_words(self._aggregates, written, leaf=self.level_names[-1])
        sentences = [self._release_in_words, undercount, capped, self._distinct_in_words]
        return ". ".join(each.rstrip(".") for each in sentences if each)

    @property
    def _distinct_in_words(self) -> str:
        """What counts of distinct units hold; empty if there are none."""
        return ""

    @property
    def _aggregates(self) -> Collection[Aggregate]:
        """What is computed from the rows of a unit that are counted."""
        return ["count"]

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the plan as a frame."""

    @property
    def protection(self) -> str:
        """The privacy loss and the privacy unit in words, for a headline."""
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        rows = f"{self._rows_in_words}{self._caps_in_words}"
        return f"{self.loss.in_words}, protecting {unit} ({rows}, {self.neighbors})"

    @property
    def _rows_in_words(self) -> str:
        return "1 row" if self.max_contributions == 1 else f"up to {self.max_contributions} rows"

    @property
    def _caps_in_words(self) -> str:
        caps = zip(reversed(self.level_names), reversed(self.caps), strict=False)
        parts = [f"{cap} per {name}" for name, cap in caps if cap is not None]
        return f", at most {' and '.join(parts)}" if parts else ""

    @property
    def _remark(self) -> str:
        """A line to print below the plan's table; empty for most kinds."""
        return ""

    def __repr__(self) -> str:
        """Format the plan as text."""
        table = self.to_frame().to_string(
            index=False, formatters=self._formats, max_rows=self._max_rows, na_rep="-"
        )
        return "\n".join(filter(None, [self.headline, table, self._remark, self._digest_line]))

    def _repr_html_(self) -> str:
        """Format the plan for a notebook."""
        table = self.to_frame().to_html(
            index=False, formatters=self._formats, border=0, max_rows=self._max_rows, na_rep="-"
        )
        below = [f"<p>{escape(line)}</p>" for line in (self._remark, self._digest_line) if line]
        return "\n".join([f"<p>{escape(self.headline)}</p>", table, *below])

    @property
    def _digest_line(self) -> str:
        return f"Digest: {self.digest}" if self.digest else ""

    @property
    def _formats(self) -> dict[Any, Any]:
        return FORMATS

    def provenance(self, origin: Origin | None = None) -> dict[str, Any]:
        """Describe how a release is made, as in the table's ``attrs["dp"]``: for display, it proves nothing.

        `origin` is where the noise comes from, by default the operating system, and what is charged.
        """
        return {
            "mechanism": self.mechanism_name,
            **self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": None if self.privacy_unit is None else str(self.privacy_unit),
            "max_contributions": self.max_contributions,
            **caps_to_json(self.caps, self.level_names),
            "domain_source": self.domain_source,
            **self._provenance_details(),
            **(origin or Origin()).to_dict(),
            "digest": self.digest,
            "version": __version__,
        }

    def _attrs(self, origin: Origin | None = None) -> dict[str, Any]:
        """Return the attributes of a released table: ``dp``, and ``dp_plan`` if JSON can hold the plan.

        ``dp`` is the provenance, and ``dp_plan`` is the plan as JSON text. It is text because operations of
        pandas copy ``attrs``, and copying a text costs nothing.
        """
        plan = {} if self.digest is None else {"dp_plan": self._text}
        return {"dp": self.provenance(origin), **plan}

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """The name of the mechanism in ``attrs`` and JSON."""

    @property
    @abstractmethod
    def domain_source(self) -> Source | None:
        """Where the public keys came from; None if no keys are public."""

    @abstractmethod
    def _provenance_details(self) -> Mapping[str, Any]:
        """Return the part of the provenance that is specific to this kind of plan, as plain JSON."""

    # Release

    @abstractmethod
    def _prepared(self, data: Any) -> Release:
        """Check that data can be released by this plan, as far as public arguments tell; read no records."""

    @takes(*RUNNING)
    def release(self, data: Any, **options: Unpack[Running]) -> Released:
        """Spend the budget: measure the data and return the release.

        Parameters
        ----------
        data : dataframe or numpy.ndarray
            The records, one row each; some kinds of plans take exact counts as well.
        **options

        Returns
        -------
        pandas.DataFrame or Distribution
            The table, which the documentation of each kind of plan describes.

        Raises
        ------
        ArgumentError
            If `data` cannot be counted, or does not fit the plan; `ColumnsError` if a column is missing or
            repeated, or has a type that cannot be read.
        LedgerError
            If the account refuses the release, or cannot be charged.
        MissingExtraError
            If `progress` is True and tqdm is not installed.

        Notes
        -----
        **Privacy**: each call spends the plan's whole privacy loss anew. Without `ledger`, nothing adds up
        what several calls spend. The steps of the progress bar follow from the plan alone. The times that it
        shows may depend on the records, so do not publish them.
        """
        released: Released = carry_out({None: self._prepared(data)}, options)[None]
        return released

    @abstractmethod
    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, Tally[Any]]:
        """Open records for reading, with the tally that counts them; read nothing yet."""

    @takes("temp_folder")
    def secret_check(self, records: Any, **options: Unpack[Running]) -> SecretCheck:
        """Say what a release would count of the records, and why it drops others, in exact numbers. Secret.

        It is for whoever may see the records, to find keys that are coded otherwise than in the domain,
        columns that are mostly missing, and bounds that do not fit the data.

        Parameters
        ----------
        records : dataframe
            The records, one row each, as for `release`.
        **options

        Returns
        -------
        SecretCheck
            The first line of its text says that it is secret.

        Raises
        ------
        ArgumentError
            If `records` cannot be counted, or does not fit the plan; `ColumnsError` if a column is missing or
            repeated, or has a type that cannot be read.

        Notes
        -----
        **Privacy**: there is none. The numbers are exact, and the commonest keys that are not in the domain
        are those of the records. No budget is spent; nothing is written, cached or logged. A choice that is
        made by looking at the result (of epsilon, bounds, `max_contributions` or the domain) depends on the
        records, and no guarantee of a release covers it.

        Examples
        --------
        >>> import pandas as pd
        >>> import pandas_dptree as dpt
        >>> places = dpt.Domain.from_frame(pd.DataFrame({"zip": ["00501", "10001"]}), by=["zip"])
        >>> records = pd.DataFrame({"zip": ["10001", "501", "501", None]})
        >>> dpt.plan(places, epsilon=1.0).secret_check(records)
        SECRET: publish nothing of this, and do not choose epsilon by it
        Rows read: 4. Counted: 1.
        Dropped rows, by the first reason:
                              reason column rows
                  the key is missing    zip    1
        the key is not in the domain    zip    2
        Commonest keys that are not in the domain:
        column value rows    near        differ
           zip '501'    2 '00501' leading zeros
        Rows whose keys match, by level:
        level rows
        total    4
          zip    1
        """
        if isinstance(records, np.ndarray):
            raise ArgumentError(
                "records", "holds counts, not records.", hint="pass the frame that was counted."
            )
        running = with_defaults(["temp_folder"], options)
        self._prepared(records)  # refuses what a release would
        resources = Resources(Origin().source, checked_folder(running["temp_folder"]))
        bounding = resources.bounding(self)
        return checked(*self._opened(records, bounding), bounding, self.level_names)

    @abstractmethod
    def compare(self) -> pd.DataFrame:
        """Compare how the same privacy loss could be spent on the same release."""

    # JSON

    @property
    @abstractmethod
    def hierarchy(self) -> Any:
        """The public hierarchy or groups, needed to read the plan from JSON."""

    @abstractmethod
    def _fields(self) -> Mapping[str, Any]:
        """Return the fields that are specific to this kind of plan, as plain JSON."""

    @classmethod
    @abstractmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Any, **common: Any) -> Self:
        """Make a plan from the result of `_fields` and the attributes that all plans have."""

    def to_dict(self) -> dict[str, Any]:
        """Serialize the plan as plain JSON, to be approved today and released tomorrow.

        It holds the noise scales, the `digest`, and a fingerprint of the domain, not its labels.

        Raises
        ------
        ArgumentError
            If JSON cannot hold a name.
        """
        stored: dict[str, Any] = json.loads(self._text)
        return stored

    @cached_property
    def _text(self) -> str:
        """The plan as JSON text, made once: every release carries it."""
        content = self._content
        sealed = {"version": __version__, "digest": serialize.digest_of(content)}
        return json.dumps({"format": serialize.FORMAT, "kind": self.kind, **sealed, **content})

    @cached_property
    def _content(self) -> Mapping[str, Any]:
        """Everything that a release depends on, as plain JSON: of a plan that was read, as it was written."""
        return {
            "format": serialize.FORMAT,
            "kind": self.kind,
            "domain": serialize.fingerprint_of(self.hierarchy),
            "domain_source": self.domain_source,
            "levels": [str(name) for name in self.level_names],
            "nodes": serialize.level_sizes(self.hierarchy),
            "loss": self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": serialize.name("privacy_unit", self.privacy_unit),
            "max_contributions": self.max_contributions,
            **caps_to_json(self.caps, self.level_names),
            "mechanism": self.mechanism_name,
            **self._fields(),
        }

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of everything that a release depends on, including the noise scales, in hexadecimal digits.

        Two plans with the same digest make releases with the same distribution, by the same version of this
        package. The digest in a file detects only accidents, since whoever changes the file can recompute it.
        So note the digest elsewhere when the plan is approved, and pass it to `from_dict`. None for a plan
        that JSON cannot hold, such as one with a tuple as a name.
        """
        try:
            return serialize.digest_of(self._content)
        except ArgumentError:
            return None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], domain: Any = None, *, digest: str | None = None) -> Self:
        """Read a plan of this kind from `to_dict`; ``Plan.from_dict`` reads a plan of any kind.

        The noise scales are those in `data`, so a later version releases a plan with the noise that was
        approved. They are checked: a plan is refused if it spends more than the loss that it states, or has
        an entry that is unknown or does not follow from the others.

        Parameters
        ----------
        data : mapping
            From `to_dict`, possibly through JSON.
        domain : Domain, Tree, BitPrefixes, CharPrefixes or None
            The plan's `hierarchy`. A plan for observed keys remains one, even if the same keys are now given
            as a list. If the plan was made for a list, keys observed in records are refused.
        digest : str, optional
            The `digest` of the approved plan, in 64 digits; any other plan is refused. Without it, an edited
            plan with a recomputed digest may be accepted, but none that spends more than it states.

        Raises
        ------
        ArgumentError
            If `data` is not a plan of this kind, was changed, or spends more than it states; or if `digest`
            is that of another plan. `DomainError` if the domain is not the plan's.
        """
        found = serialize.kind_of(data, cls._kinds)
        if not issubclass(found, cls):
            raise ArgumentError(
                "data",
                f"is of kind {found.__name__}, not {cls.__name__}.",
                hint=f"read it with {found.__name__}.from_dict; Plan.from_dict reads plans of all kinds.",
            )
        serialize.check_digest(data, digest)
        plan: Self = serialize.read(found._from_fields, data, domain)
        serialize.check_same_content(data, plan._content)
        plan.__dict__["_content"] = {key: data[key] for key in plan._content}
        return plan
