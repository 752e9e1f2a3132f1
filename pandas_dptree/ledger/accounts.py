"""Accounts: how much may be lost about one population, and how much is."""

from __future__ import annotations

import logging
import sqlite3
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from typing import Any

from pandas_dptree.errors import ArgumentError, InsufficientBudgetError, quote
from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import Terms, checked_name, checked_note, readable
from pandas_dptree.ledger.releases import prepared_releases
from pandas_dptree.ledger.store import Store, spent_of
from pandas_dptree.ledger.tables import keep_tables, keeps_tables, kept_output, packed, write_beside
from pandas_dptree.ledger.transactions import Request, charges_of_table, commit, left_of, prepared, time_of
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.charging import Charge, Chargeable, Chargeables, Kept, Output
from pandas_dptree.plans.options import Running
from pandas_dptree.plans.running import carry_out
from pandas_dptree.privacy.loss import PrivacyLoss, checked_shares, float_within
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import public

__all__ = ["Account", "Several"]

_LOGGER = logging.getLogger("pandas_dptree.ledger")
"""Logs what the ledger says, and nothing else."""


class _Charging(Chargeable):
    """What the accounts of one ledger do for releases, alone or together."""

    __slots__ = ()

    _store: Store

    @abstractmethod
    def _requests(self, plans: Chargeables) -> dict[Hashable, Request]:
        """Return what releases by these plans ask of the accounts."""

    def _checked(self, plans: Chargeables) -> dict[Hashable, Request]:
        """Return what releases by these plans ask of the accounts, each by another name."""
        requests = self._requests(plans)
        seen = set()
        for each in requests.values():
            key = (each.account, each.part, each.name)
            if key in seen:
                raise ArgumentError(
                    "plans",
                    f"have two names that a ledger stores alike: {quote(each.name)}.",
                    hint="use names that differ as text.",
                )
            seen.add(key)
        return requests

    def kept(self, plans: Chargeables, note: str) -> dict[Hashable, Kept]:
        """Return the tables that were kept of releases by the same plans, with the same note and names."""
        note = checked_note(note)
        found: dict[Hashable, Kept] = {}
        with self._store.reading() as connection:
            for name, request in self._checked(plans).items():
                for number, time, plan, released in charges_of_table(connection, request, note):
                    if released and plan == request.plan.digest and name not in found:
                        output = kept_output(connection, self._store.path, number)
                        if output is not None:
                            found[name] = Kept(
                                table=output.table, account=request.account, number=number, requested=time
                            )
                            _LOGGER.info("the table of charge %d is returned as it was kept", number)
        return found

    def check(self, plans: Chargeables, note: str, *, allow_repeat: bool | Collection[str]) -> None:
        """Raise what `charge` would raise now, and charge nothing; see there."""
        note = checked_note(note)
        with self._store.reading() as connection:
            prepared(connection, list(self._checked(plans).values()), note, allow_repeat=allow_repeat)

    def charge(
        self, plans: Chargeables, note: str, *, allow_repeat: bool | Collection[str], requested: datetime
    ) -> dict[Hashable, Charge]:
        """Charge releases by all plans, or none. The charges are on disk when this returns.

        The verbs and `release` call this before they draw noise. Whoever releases by other means may call it
        too; nothing that is charged is ever refunded.

        Parameters
        ----------
        plans : mapping of hashable to Plan
            The plans by the names of their tables; the name None stands for the only table.
        note : str
            What the releases are for: a line of up to 200 characters.
        allow_repeat : bool or collection of str
            Whether a table may be charged again with the same note: all, or those of these names.
        requested : datetime
            When the release was requested, before any record was read. It is stored in seconds.

        Raises
        ------
        ArgumentError
            If the note cannot be used.
        InsufficientBudgetError
            If one of the releases does not fit after those before it.
        RepeatedReleaseError
            If one was charged before with the same note and name, by the same plan or by another.
        LedgerError
            If a plan does not belong to the account, or the file cannot be written.
        """
        note, requests = checked_note(note), self._checked(plans)
        with self._store.writing() as connection:
            charges = prepared(connection, list(requests.values()), note, allow_repeat=allow_repeat)
            heads = commit(connection, charges, note, requested=requested)
        for each, head in zip(requests.values(), heads, strict=True):
            _LOGGER.info(
                "charge %d: account %r, note %r, %s, plan %s",
                head.number, each.account, note, readable(each.plan.subject), each.plan.digest,
            )  # fmt: skip
        return {
            name: Charge(
                account=each.account, part=each.part, number=head.number, digest=head.digest, note=note
            )
            for (name, each), head in zip(requests.items(), heads, strict=True)
        }

    def keep(self, outputs: Mapping[Charge, Output]) -> None:
        """Keep the tables of these charges, unless the ledger keeps none, and mark them as released."""
        with self._store.reading() as connection:
            keeps = keeps_tables(connection)
        tables = packed(outputs) if keeps else []
        for each in tables:
            if not each.is_inside:
                with self._store.reading() as connection:
                    requested = time_of(connection, each.charge)
                write_beside(self._store.path, each, requested)
        with self._store.writing() as connection:
            keep_tables(connection, tables)
            _mark(connection, outputs)
        _LOGGER.info(
            "%s the tables of charges %s", "kept" if keeps else "made", [each.number for each in outputs]
        )

    def mark_released(self, charges: Iterable[Charge]) -> None:
        """Note that the tables of these charges were made, without keeping them."""
        with self._store.writing() as connection:
            _mark(connection, charges)


def _mark(connection: sqlite3.Connection, charges: Iterable[Charge]) -> None:
    numbers = [(charge.number,) for charge in charges]
    connection.executemany("INSERT OR IGNORE INTO released VALUES (?)", numbers)


@dataclass(frozen=True, slots=True, repr=False)
class Account(_Charging):
    """The budget of one population, in a ledger: ``ledger["patients"]``.

    It is passed as `ledger` to every verb and to ``plan.release``, which then charge it before they draw
    noise.

    Attributes
    ----------
    name : str
    cap : PrivacyLoss
        The largest loss of all releases together.
    privacy_unit : str or int or None
        The column that identifies whom it protects; None if each row is a unit of its own.
    neighbors : {"add_remove", "replace"}
    parts : tuple of str or None
        The names of the parts, if it has any. Each unit must be in one part only.
    fixed_records : bool
        Whether it is assumed that records do not react to earlier releases.
    selected : str or None
        The part to which releases are charged; None for the whole account. See `part`.

    Notes
    -----
    **Privacy**: an account, and everything that it shows, is public. It follows from the plans that were
    charged. The guarantee of all releases together is the cap, even if each plan was chosen after the outputs
    before it were seen; `pandas_dptree.ledger.transactions` has the proof. It holds for all releases that are
    charged here. The ledger does not know of others.

    Examples
    --------
    >>> import tempfile, pandas_dptree as dpt
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/budget.sqlite"
    >>> ledger = dpt.Ledger.create(path, account="patients", rho=0.02, privacy_unit="person")
    >>> ledger["patients"]
    Account 'patients' (protects each 'person', add_remove): 0.02 of rho=0.02 left, 0 charges
    >>> ledger["patients"].divide(4)[0]
    PrivacyLoss(epsilon=None, delta=0.0, rho=0.005)
    >>> ledger.close()
    >>> folder.cleanup()
    """

    _store: Store
    _terms: Terms
    selected: str | None = None

    @property
    def name(self) -> str:
        """The name of the account."""
        return self._terms.name

    @property
    def cap(self) -> PrivacyLoss:
        """The largest loss of all releases together."""
        return self._terms.cap

    @property
    def privacy_unit(self) -> Hashable | None:
        """The column that identifies whom the account protects; None if each row is a unit of its own."""
        return self._terms.privacy_unit

    @property
    def neighbors(self) -> Neighbors:
        """How neighbouring data sets differ."""
        return self._terms.neighbors

    @property
    def parts(self) -> tuple[str, ...] | None:
        """The names of the parts; None if the account has none."""
        return self._terms.parts

    @property
    def fixed_records(self) -> bool:
        """Whether it is assumed that records do not react to earlier releases."""
        return self._terms.fixed_records

    def part(self, name: str) -> Account:
        """Return the account limited to one part, to charge releases of the records of this part.

        Releases of different parts do not add up, since each unit is in one part only. So a release that is
        charged to a part may only read records of units of this part.

        Parameters
        ----------
        name : str
            One of `parts`.

        Raises
        ------
        ArgumentError
            If there is no such part.

        Notes
        -----
        **Privacy**: that the records are those of the part, and that no unit is in two parts, is up to the
        caller. If a person may visit in January and in February, months are not parts of an account that
        protects persons.
        """
        if self.selected is not None:
            raise ArgumentError(
                "part",
                f"is chosen already: {quote(self.selected)}.",
                hint="choose it from the whole account, as in ledger[name].part(...).",
            )
        return replace(self, selected=self._terms.check_part(name))

    @property
    def spent(self) -> Balance:
        """What is spent: for the whole account, including the part that has spent most."""
        return Balance(amount=self._terms.exact_cap - self._left()[0], cap=self.cap, state="spent")

    @property
    def remaining(self) -> Balance:
        """What may still be charged; as a condition, False if nothing is left."""
        return Balance(amount=self._left()[0], cap=self.cap, state="left")

    @property
    def n_charges(self) -> int:
        """The number of charges, of the part if one is chosen, otherwise of all."""
        return self._left()[1]

    def _left(self) -> tuple[Amount, int]:
        with self._store.reading() as connection:
            found = spent_of(connection, self.name)
        spent = {part: amount for part, (amount, _) in found.items()}
        n = sum(n for part, (_, n) in found.items() if self.selected in (None, part))
        return left_of(self._terms.exact_cap, spent, self.selected), n

    def divide(self, shares: int | Sequence[float]) -> list[PrivacyLoss]:
        """Divide what is left among further releases, so that all of them certainly fit.

        Parameters
        ----------
        shares : int or sequence of float
            The number of equal shares; or the sizes of the shares, in proportion.

        Returns
        -------
        list of PrivacyLoss
            Pass one to a verb as ``rho=loss.rho``, or for an account in epsilon as ``**loss.to_dict()``. Of
            an account in rho, only releases with private keys take the delta too.

        Raises
        ------
        ArgumentError
            If a share is not positive.
        InsufficientBudgetError
            If nothing is left.

        Notes
        -----
        Numbers are rounded down. A release is charged the smaller of the float and its shortest decimal, so
        the sum of all shares is at most what is left, exactly. Nothing is reserved: other releases may be
        charged in between. The shares depend on what is left. A script that may run twice divides the cap
        instead, ``account.cap.divide(12)``, so that its plans are the same again, and are refused.
        """
        sizes = checked_shares(shares)
        left = self.remaining
        whole = sum(sizes)
        parts = []
        for size in sizes:
            loss = float_within(left.usable.loss * size / whole)
            if not loss:
                raise InsufficientBudgetError(
                    f"The account {quote(self.name)} has {left}, which cannot be divided.",
                    account=self.name,
                    requested=left,
                    remaining=left,
                    hint="the budget is spent.",
                )
            delta = float_within(left.usable.delta * size / whole)
            parts.append(PrivacyLoss(**{self._terms.currency: loss, "delta": delta}))
        return parts

    @public
    def release(
        self,
        plans: Mapping[Hashable, Plan[Any]],
        data: Any,
        *,
        note: str,
        allow_repeat: bool = False,
        progress: bool = False,
    ) -> dict[Hashable, Any]:
        """Release several tables that are charged together: all of them, or none.

        Parameters
        ----------
        plans : mapping of hashable to Plan
            The plans, by names of your choice.
        data : dataframe, array, Dataset or mapping
            What all plans take, as for their ``release``; or a mapping with the data of each plan.
        note : str
            What the releases are for. The same plan with the same note and name again returns the table that
            was kept; another plan for this table is refused.
        allow_repeat : bool, default False
            Whether to release tables again with the same note, which is charged in full again.
        progress : bool, default False
            Whether to show a progress bar on standard error. Needs tqdm.

        Returns
        -------
        dict
            The released tables, by the names of their plans.

        Raises
        ------
        ArgumentError
            If an argument cannot be used.
        LedgerError
            If the account refuses one of the releases. Then nothing was charged or released.

        Notes
        -----
        **Privacy**: the records of all releases are read first. Then the charges are committed to disk, and
        only then noise is drawn.
        """
        options: Running = {"note": note, "allow_repeat": allow_repeat, "progress": progress, "ledger": self}
        return carry_out(prepared_releases(plans, data), options)

    def _requests(self, plans: Chargeables) -> dict[Hashable, Request]:
        """Return what releases by these plans ask of this account."""
        return {
            name: Request(account=self.name, part=self.selected, name=checked_name(name), plan=plan)
            for name, plan in plans.items()
        }

    # Display

    def __repr__(self) -> str:
        """Format who is protected, and what is left."""
        part = "" if self.selected is None else f", part {self.selected!r}"
        return (
            f"Account {self.name!r}{part} (protects {self._terms.protects}, {self.neighbors}): "
            f"{self.remaining}, {self.n_charges:,} charge{'s' * (self.n_charges != 1)}"
        )

    def _repr_html_(self) -> str:
        """Format the account for a notebook."""
        facts = {
            "account": self.name,
            **({} if self.selected is None else {"part": self.selected}),
            "cap": self.cap.in_words,
            "spent": str(self.spent),
            "left": str(self.remaining),
            "charges": f"{self.n_charges:,}",
            "protects": f"{self._terms.protects} ({self.neighbors})",
        }
        left = 'style="text-align: left"'
        rows = (
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(fact)}</td></tr>"
            for name, fact in facts.items()
        )
        return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True, slots=True)
class Several(_Charging):
    """Accounts of one ledger that are charged in one transaction.

    The names of plans are pairs: the name of the account, and that of the table.
    """

    _store: Store
    accounts: Mapping[str, Account]

    def _requests(self, plans: Any) -> dict[Hashable, Request]:
        return {
            (name, table): self.accounts[name]._requests({table: plan})[table]
            for (name, table), plan in plans.items()
        }
