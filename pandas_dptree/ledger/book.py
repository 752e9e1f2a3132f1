"""Ledgers: files of accounts and of what was charged to them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, did_you_mean, listed, quote
from pandas_dptree.ledger.accounts import Account, Several
from pandas_dptree.ledger.entries import Terms, in_normal_form, text_of_time, user_name
from pandas_dptree.ledger.history import charges_as_frame, entries_as_json, plot_spending
from pandas_dptree.ledger.page import ledger_page
from pandas_dptree.ledger.releases import by_name, check_plans, prepared_releases
from pandas_dptree.ledger.store import FORMAT, Head, Store, append, head_of
from pandas_dptree.ledger.tables import keeps_tables, kept_output
from pandas_dptree.ledger.transactions import terms_of
from pandas_dptree.ledger.verification import verified
from pandas_dptree.output.derived.estimates import with_linear
from pandas_dptree.output.html_page import returned_or_saved
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.options import Running
from pandas_dptree.plans.running import carry_out
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import EachRow
from pandas_dptree.signatures import public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ledger"]


class Ledger:
    """A file of accounts, which are charged for each release and never overspent.

    `Ledger.create` makes one, and `Ledger.open` opens it. ``ledger["patients"]`` is an account; iteration is
    over the names of accounts.

    Notes
    -----
    **Privacy**: everything in a ledger follows from plans, notes and released tables. A loss is charged, and
    the charge is on disk, before the first noise of a release is drawn; nothing is ever refunded. A crash may
    lose budget, but never privacy. The table is kept before it is returned.

    The file is an SQLite database. Threads and processes may use it at the same time, and it survives crashes
    and forks; each process opens it for itself. Keep it on a local disk, not on a network file system. Close
    it before you copy it, as its last charges may be in a second file beside it, whose name ends in ``-wal``.
    For the same reason, give a container the whole folder, never the file alone, and make no hard links.
    Whoever may write to the file can also replace it: a restored backup forgets the charges made since. So
    note `head` elsewhere, and pass it to `verify`.

    Examples
    --------
    >>> import tempfile, pandas_dptree as dpt
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/budget.sqlite"
    >>> with dpt.Ledger.create(path, account="patients", rho=0.02, privacy_unit="person") as ledger:
    ...     clinics = ledger.add_account("clinics", epsilon=1.0, privacy_unit="clinic")
    ...     list(ledger), clinics.remaining
    (['patients', 'clinics'], 1 of epsilon=1 left)
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        if not isinstance(store, Store):
            raise ArgumentError(
                "store",
                f"cannot be {quote(store)}.",
                hint="open a ledger with dpt.Ledger.open(path), or make one with dpt.Ledger.create(...).",
            )
        self._store = store

    @classmethod
    @public
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        account: str,
        privacy_unit: Hashable | Literal[EachRow.ROWS],
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        neighbors: Neighbors = "add_remove",
        parts: Iterable[str] | None = None,
        fixed_records: bool | None = None,
        keep_tables: bool = True,
    ) -> Self:
        """Make a ledger with one account.

        Parameters
        ----------
        path : path
            The file, which must not exist.
        account : str
            The name of the account, for example that of the population.
        privacy_unit : hashable or ROWS
            The column that identifies whom the account protects, or `pandas_dptree.ROWS` if each row is a
            unit of its own. Plans for other units are refused.
        epsilon, delta, rho : float
            The cap: the largest loss of all releases together. As typed: ten times 0.1 fits into 1, and three
            times into 0.3. An account in `epsilon` adds up epsilons, an account in `rho` rhos, and both add
            up deltas.
        neighbors : {"add_remove", "replace"}
            How neighbouring data sets differ. Plans for the other relation are refused.
        parts : iterable of str, optional
            Names of parts, such as regions, of which each unit is in *one* only. Releases of different parts
            do not add up; see `Account.part`. Needs ``neighbors="add_remove"``.
        fixed_records : bool, optional
            True states that no record depends on an earlier release. Without this, releases of parts are only
            proven to be parallel for pure differential privacy, so all other accounts with `parts` need it.
        keep_tables : bool, default True
            Whether the ledger keeps each released table with its charge, and returns it when the release is
            repeated. Tables of more than 64 MB are kept in a folder beside the file, whose name ends in
            ``-tables``. Whoever may read the ledger may then read all tables.

        Raises
        ------
        ArgumentError
            If one of the arguments cannot be used.
        LedgerError
            If the file exists or cannot be created. Then there is no file at all.
        """
        now = datetime.now(timezone.utc)  # noqa: UP017
        terms = Terms.checked(
            account, epsilon=epsilon, delta=delta, rho=rho, privacy_unit=privacy_unit, neighbors=neighbors,
            parts=parts, fixed_records=fixed_records,
        )  # fmt: skip
        if not isinstance(keep_tables, bool):
            raise ArgumentError(
                "keep_tables",
                f"must be True or False, not {quote(keep_tables)}.",
                hint="False makes a ledger that holds charges alone.",
            )
        first = {
            "kind": "ledger",
            "format": FORMAT,
            "version": __version__,
            "identity": uuid.uuid4().hex,  # so that no two ledgers have the same digests
            "keep_tables": keep_tables,
            "user": user_name(),
            "time": text_of_time(now),
        }
        return cls(Store.create(_checked_path(path), [first, terms.to_content(now)]))

    @classmethod
    @public
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing ledger.

        Parameters
        ----------
        path : path
            A file that `Ledger.create` has made.

        Raises
        ------
        LedgerError
            If the file does not exist, is not a ledger, or cannot be read. It is not changed.
        """
        ledger = cls(Store(_checked_path(path)))
        ledger.head  # noqa: B018  # opens the file, so that errors appear here
        return ledger

    @public
    def add_account(
        self,
        account: str,
        *,
        privacy_unit: Hashable | Literal[EachRow.ROWS],
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        neighbors: Neighbors = "add_remove",
        parts: Iterable[str] | None = None,
        fixed_records: bool | None = None,
    ) -> Account:
        """Add an account for another population, unit or currency.

        Its cap stands for itself: two accounts of the same people add up to a loss that no cap bounds.

        Parameters
        ----------
        account : str
            The name, which no other account has.
        privacy_unit, epsilon, delta, rho, neighbors, parts, fixed_records
            As for `Ledger.create`.

        Raises
        ------
        ArgumentError
            If one of the arguments cannot be used, or there is such an account.
        LedgerError
            If the file cannot be written.
        """
        now = datetime.now(timezone.utc)  # noqa: UP017
        terms = Terms.checked(
            account, epsilon=epsilon, delta=delta, rho=rho, privacy_unit=privacy_unit, neighbors=neighbors,
            parts=parts, fixed_records=fixed_records,
        )  # fmt: skip
        with self._store.writing() as connection:
            if terms_of(connection, terms.name) is not None:
                raise ArgumentError(
                    "account",
                    f"exists already: {quote(terms.name)}.",
                    hint="choose another name. The terms of an account never change.",
                )
            append(connection, terms.to_content(now))
        return self[terms.name]

    def __getitem__(self, account: str) -> Account:
        """Return an account by its name."""
        terms = self._find(account)
        if terms is None:
            raise ArgumentError(
                "account",
                f"is unknown: {quote(account)}.",
                hint=f"{did_you_mean([account], self)}this ledger has {listed(self)}.",
            )
        return Account(self._store, terms)

    def __contains__(self, account: object) -> bool:
        """Whether there is an account with this name."""
        return self._find(account) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the accounts, in the order in which they were added."""
        with self._store.reading() as connection:
            rows = connection.execute(
                "SELECT json_extract(content, '$.name') FROM entry "
                "WHERE json_extract(content, '$.kind') = 'account' ORDER BY number"
            )
            names = [name for (name,) in rows]
        return iter(names)

    def __len__(self) -> int:
        """Return the number of accounts."""
        return len(list(iter(self)))

    def _find(self, account: object) -> Terms | None:
        name = in_normal_form(account)
        if not isinstance(name, str):
            return None
        with self._store.reading() as connection:
            return terms_of(connection, name)

    @public
    def release(
        self,
        plans: Mapping[str, Mapping[Hashable, Plan[Any]]],
        data: Any,
        *,
        note: str,
        allow_repeat: bool = False,
        progress: bool = False,
    ) -> dict[str, dict[Hashable, Any]]:
        """Release tables of several accounts that are charged together: all of them, or none.

        Parameters
        ----------
        plans : mapping of str to mapping of hashable to Plan
            For the name of each account, the plans by names of your choice.
        data : dataframe, array, Dataset or mapping
            What all plans take; or a mapping from the name of each account to what `Account.release` takes.
        note, allow_repeat, progress
            As for `Account.release`.

        Returns
        -------
        dict of str to dict
            For the name of each account, the released tables by the names of their plans.

        Raises
        ------
        ArgumentError
            If an argument cannot be used.
        LedgerError
            If one of the accounts refuses one of the releases. Then nothing was charged or released.
        """
        accounts = {name: self[name] for name in check_plans(plans)}
        releases = {
            (name, table): release
            for name, each in by_name(data, list(plans)).items()
            for table, release in prepared_releases(plans[name], each).items()
        }
        options: Running = {
            "ledger": Several(self._store, accounts),
            "note": note,
            "allow_repeat": allow_repeat,
            "progress": progress,
        }
        tables = carry_out(releases, options)
        return {name: {table: tables[name, table] for table in each} for name, each in plans.items()}

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return str(self._store.path)

    @property
    def head(self) -> Head:
        """Number and digest of the last entry. Note them elsewhere, to `verify` the ledger later."""
        with self._store.reading() as connection:
            return head_of(connection)

    def verify(self, head: str | Head | None = None) -> Head:
        """Check that the ledger was not changed, by computing everything anew.

        Checks are: the numbers and digests of all entries, the caps at every step, the cached sums, that no
        release repeats another unnoticed, the marks, the tables that were kept, the schema with its triggers,
        and SQLite's own ``integrity_check``.

        Parameters
        ----------
        head : str or Head, optional
            A digest of this ledger that was noted earlier: ``ledger.head.digest``, or the digest of a charge
            in ``attrs["dp"]`` or on the page of a released table. One of the entries must have it.

        Returns
        -------
        Head
            The last entry. Note its digest elsewhere.

        Raises
        ------
        LedgerIntegrityError
            If something is wrong, with a list of what and where.
        ArgumentError
            If `head` is not a digest.

        Notes
        -----
        Whoever changes an entry must compute all digests after it anew, which anybody with write access can
        do. Whoever removes the last entries leaves a valid chain. Both, and a restored backup, are only found
        with a `head` that was noted after the entries in question, where this person cannot write.

        No digest covers the marks of charges that have an output. So a mark that was added to a charge, or
        removed, is not found.
        """
        with self._store.reading() as connection:
            return verified(connection, head, path=self._store.path)

    def table(self, charge: int, *, linear: bool = False) -> Any:
        """Return the table that was released for a charge, as it was kept.

        Parameters
        ----------
        charge : int
            The number of the charge, as in `to_frame`, or in ``attrs["dp"]["ledger"]`` of a table.
        linear : bool, default False
            Whether to add the column ``linear`` of ``keep=["linear"]``, the unbiased estimates that the
            ledger keeps beside each table of counts or sums: proportions and changes need them. The digest
            that the table states is then that of the table with this column.

        Returns
        -------
        pandas.DataFrame, xarray.DataTree or Distribution
            What the release returned, with all types and attributes.

        Raises
        ------
        ArgumentError
            If no table was kept of this charge.
        LedgerError
            If what was kept was changed or is missing.
        """
        number = charge if isinstance(charge, int | np.integer) and not isinstance(charge, bool) else 0
        with self._store.reading() as connection:
            output = kept_output(connection, self._store.path, int(number))
        if output is None:
            raise ArgumentError(
                "charge",
                f"is not the number of a charge whose table was kept: {quote(charge)}.",
                hint="ledger.to_frame() lists all charges, and the digests of the tables that were kept.",
            )
        return with_linear(output.table, output.linear) if linear else output.table

    @property
    def keeps_tables(self) -> bool:
        """Whether released tables are kept with their charges, which was decided when the file was made."""
        with self._store.reading() as connection:
            return keeps_tables(connection)

    def to_frame(self) -> pd.DataFrame:
        """Return all charges, one row each.

        Returns
        -------
        pandas.DataFrame
            With the columns ``number`` (of the entry), ``time`` (when the release was requested),
            ``account``, ``part``, ``note``, ``name`` (in `Account.release`), ``what`` (the kind of plan, and
            its levels), ``epsilon`` or ``rho``, ``delta``, ``left`` and ``delta_left`` (of the account or
            part, after this charge), ``released`` (False if no output of it is known), ``table`` (the digest
            of the values of the table, if it was kept), ``plan`` (its digest), ``user`` and ``digest`` (of
            the ledger up to this entry). Numbers are floats; `to_json` has the exact fractions.
        """
        with self._store.reading() as connection:
            return charges_as_frame(connection)

    def to_json(self) -> str:
        """Return everything that the ledger holds as JSON text, with exact fractions.

        The digest of an entry is the SHA-256 of the digest before it, a line feed, and the content of the
        entry as JSON with sorted keys, without spaces and in ASCII.
        """
        with self._store.reading() as connection:
            return entries_as_json(connection)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the share of each cap that was spent, over time.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            For each account with charges a step line, and a dotted one for its delta. An account with parts
            shows the part that has spent most.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        with self._store.reading() as connection:
            return plot_spending(connection, ax)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> str | None:
        """Format the ledger as a self-contained page to print, for whoever oversees the releases.

        For each account it says who is protected, the cap, what is spent and left, and lists each release
        with its loss and digest.

        Parameters
        ----------
        path : str or path, optional
            The file to write, in whole or not at all; an existing one is replaced. By default the page is
            returned.
        title : str, optional
            The heading.

        Returns
        -------
        str or None
            The page, if no path is given.

        Raises
        ------
        ArgumentError
            If the title is not text, or the file is the ledger or cannot be written.
        """
        with self._store.reading() as connection:
            page = ledger_page(connection, title=title, name=self._store.path.name)
        if path is not None and self._store.is_file(path):
            raise ArgumentError("path", "is the ledger itself.", hint='for example "ledger.html".')
        return returned_or_saved(page, path)

    def close(self) -> None:
        """Close the file. It is opened again when the ledger or one of its accounts is used."""
        self._store.close()

    def __enter__(self) -> Self:
        """Return the ledger, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        """Format the accounts."""
        accounts = [f"  {self[name]!r}" for name in self]
        return "\n".join([f"Ledger {self._store.path.name!r}, {self.head.number} entries", *accounts])


def _checked_path(path: object) -> str | os.PathLike[str]:
    if isinstance(path, str | os.PathLike) and str(path):
        return path
    raise ArgumentError(
        "path", f"must be the path of a file, not {quote(path)}.", hint='for example "budget.sqlite".'
    )
