"""The digest of the values of a released table, by which values that were changed later are seen.

It is a SHA-256 of the columns in order, whatever library or file holds them: see `table_digest`. A table
states the digest that it was released with as ``attrs["dp"]["table_digest"]``.

**Privacy**: a function of the released table.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.output.column_types import (
    Cells,
    encode,
    kind_of_missing,
    names_as_text,
    numbered_text,
    printable,
)

__all__ = [
    "Alteration",
    "Keeper",
    "alteration",
    "how_altered",
    "state_digest",
    "stated_digest",
    "table_digest",
]

Table = TypeVar("Table", bound=Any)

Alteration = Literal["selected", "changed", "either"]

_ALTERED: Final[Mapping[Alteration, str]] = {
    "selected": "rows were selected or moved; their values are those of the release",
    "changed": "values were changed after the release",
    "either": "rows or columns were selected, moved or added, or values were changed after the release",
}
_KEY: Final = "table_digest"
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


def table_digest(released: Any) -> str:
    """Return the SHA-256 of the values of a table, in hexadecimal digits.

    It depends on the names of the columns and on the values in the order of the rows, and not on ``attrs``,
    row numbers or types that a file may change. Each column adds a line of JSON, ``[name, kind, rows]``, and

    - kind ``"whole"``, if all values are whole numbers of 64 bits, or texts of such: 8 bytes each, and a byte
      each that is 1 where the value is missing, which counts as 0;
    - kind ``"number"``, if they are other numbers: 8 bytes each, as in IEEE 754, with the quiet NaN where
      missing, and 0 for -0;
    - kind ``"text"``, if they are anything else, as the text that a CSV file would have: 4 bytes each, the
      number of the text among the distinct ones in the order of the rows, -1 where missing; and for each
      distinct text 8 bytes, its length, and its UTF-8.

    All numbers are little-endian. Columns of a named index come first. Of a distribution and of objects of
    xarray, the arrays are read as columns.
    """
    digest = hashlib.sha256()
    for column, name in _columns(released):
        kind, parts = _canonical(column)
        digest.update(f"{json.dumps([name, kind, len(column)])}\n".encode())
        for part in parts:
            digest.update(part)
    return digest.hexdigest()


def state_digest(released: Table) -> Table:
    """Let a table state its own digest, if it states how it was made; return the table."""
    stated = released.attrs.get("dp")
    if isinstance(stated, str):  # of xarray
        released.attrs["dp"] = json.dumps({**json.loads(stated), _KEY: table_digest(released)})
    elif isinstance(stated, dict):
        stated[_KEY] = table_digest(released)
    return released


def stated_digest(released: Any) -> str | None:
    """Return the digest that a table states, which proves nothing; None if there is none."""
    stated = released.attrs.get("dp")
    if isinstance(stated, str) and not isinstance(released, pd.DataFrame):  # of xarray
        stated = json.loads(stated)
    digest = stated.get(_KEY) if isinstance(stated, dict) else None
    return digest if isinstance(digest, str) else None


@runtime_checkable
class Keeper(Protocol):
    """A ledger that keeps what was released."""

    def __contains__(self, account: object) -> bool:
        """Whether it has an account."""

    def __getitem__(self, account: str) -> Any:
        """Return an account, which says what remains of it."""

    def table(self, charge: int, *, linear: bool = False) -> Any:
        """Return the table that was released for a charge, perhaps with its unbiased estimates."""


def alteration(table: Any) -> str:
    """Say that a table has other values than its release; nothing if it has not, or states no digest."""
    kind = how_altered(table)
    return f"not the whole released table: {_ALTERED[kind]}" if kind else ""


def how_altered(table: Any, ledger: Keeper | None = None) -> Alteration | None:
    """Return in what a table differs from its release; None if it does not, or states no digest.

    With the ledger, the table is compared with the one that was kept, and the change is known.
    """
    if ledger is not None and isinstance(whole := _kept(table, ledger), pd.DataFrame):
        if table_digest(table) == table_digest(whole):
            return None
        return "selected" if _has_rows(whole, table) else "changed"
    digest = stated_digest(table)
    return "either" if digest is not None and digest != table_digest(table) else None


def _kept(table: Any, ledger: Keeper) -> Any:
    """Return the table that was released for the charge that a table states."""
    stated = table.attrs.get("dp")
    charge = stated.get("ledger") if isinstance(stated, dict) else None
    if not isinstance(ledger, Keeper) or not isinstance(charge, dict):
        raise ArgumentError(
            "ledger",
            "must be the ledger that the release was charged to, as the table states."
            if isinstance(ledger, Keeper)
            else f"must be a ledger, not {kind_of_object(ledger)}.",
            hint='for example dpt.Ledger.open("budget.sqlite"); or leave it out.',
        )
    names = [str(name) for name in getattr(table, "columns", ())]
    linear = any(name == "linear" or name.endswith("_linear") for name in names)
    whole = ledger.table(charge.get("charge", 0), linear=linear)
    if not isinstance(whole, pd.DataFrame) or whole.attrs["dp"].get("ledger") == charge:
        return whole
    raise ArgumentError(
        "ledger",
        "is not the one that the release was charged to: its charge has another digest.",
        hint="open the ledger of this release, or leave it out.",
    )


def _has_rows(whole: pd.DataFrame, table: pd.DataFrame) -> bool:
    """Whether a table has each row of another one, in the columns of that one."""

    def rows(of: pd.DataFrame) -> set[tuple[str | None, ...]]:
        return set(zip(*(_cells(of[name]) for name in table.columns), strict=True))

    return {*table.columns} <= {*whole.columns} and rows(table) <= rows(whole)


def _columns(released: Any) -> Iterator[tuple[pd.Series, Any]]:
    """List columns, each with a name for JSON."""
    if isinstance(released, xr.DataTree):
        for node in released.subtree:
            dataset = node.to_dataset(inherit=False)
            yield from ((column, [node.path, *name]) for column, name in _columns(dataset))
    elif isinstance(released, xr.Dataset):
        for name, each in released.variables.items():
            yield pd.Series(np.asarray(each).ravel()), [str(name), list(map(str, each.dims)), *each.shape]
    elif isinstance(released, pd.DataFrame):
        index, released = (
            released.index,
            pd.DataFrame(released),
        )  # without attrs, which each column would copy
        levels = [index.get_level_values(level) for level, name in enumerate(index.names) if name is not None]
        columns = [pd.Series(values, dtype=values.dtype, name=values.name) for values in levels]
        columns += [released.iloc[:, place] for place in range(released.shape[1])]
        yield from zip(columns, names_as_text(column.name for column in columns), strict=True)
    else:  # a distribution, whose tables have digests, too
        yield from ((column, ["groups", name]) for column, name in _columns(pd.DataFrame(released.groups)))
        arrays = {"edges": released.bins.edges, "totals": released.totals, "estimates": released.estimates}
        yield from ((pd.Series(values.ravel()), name) for name, values in arrays.items())


def _canonical(column: pd.Series) -> tuple[str, list[bytes]]:
    """Return the kind of a column, and its values as bytes: see `table_digest`."""
    numbers = _numbers(column)
    if numbers is None:
        codes, texts = _texts(column)
        if not all(map(_WHOLE.fullmatch, texts)) or any(abs(int(text)) >= 2**63 for text in texts):
            encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
            return "text", [
                codes.astype("<i4").tobytes(),
                *(part for text in encoded for part in (len(text).to_bytes(8, "little"), text)),
            ]
        values, missing = np.array([*map(int, texts), 0], dtype=np.int64)[codes], codes < 0
    else:
        values, missing = numbers
        if values.dtype.kind == "f":
            whole = np.abs(values) < 2**63
            whole &= values == np.floor(values)
            if not (whole | missing).all():
                values = np.where(missing, np.nan, values + 0.0)
                return "number", [values.astype("<f8").tobytes()]
            values = np.where(missing, 0, values).astype(np.int64)
    return "whole", [np.where(missing, 0, values).astype("<i8").tobytes(), missing.tobytes()]


def _numbers(column: pd.Series) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
    """Return numbers, and where they are missing; None for others, and for whole ones beyond 64 bits."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if (found := _numbers(pd.Series(dtype.categories))) is None:
            return None
        codes = column.cat.codes.to_numpy()
        return np.append(found[0], 0)[codes], np.append(found[1], True)[codes]
    if isinstance(dtype, pd.StringDtype) or not pd.api.types.is_any_real_numeric_dtype(dtype):
        return None
    missing = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), missing
    if not pd.api.types.is_integer_dtype(dtype):
        return None
    if not pd.api.types.is_unsigned_integer_dtype(dtype):
        return column.to_numpy(dtype=np.int64, na_value=0), missing
    values = column.to_numpy(dtype=np.uint64, na_value=0)
    return None if (values >= 2**63).any() else (values.astype(np.int64), missing)


def _texts(column: pd.Series) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Number the texts of a column in the order of the rows, -1 if missing; and list them."""
    dtype: Any = column.dtype
    codes: npt.NDArray[Any]
    if isinstance(dtype, pd.CategoricalDtype):
        codes, cells = column.cat.codes.to_numpy(), _cells(pd.Series(dtype.categories))
    elif dtype != np.dtype(object) and not isinstance(dtype, pd.StringDtype):
        codes, distinct = column.factorize()
        cells = _cells(pd.Series(distinct, dtype=dtype))
    else:
        others = (each for each in column if type(each) is not str) if dtype == np.dtype(object) else ()
        if any(kind_of_missing(each) is None for each in others):
            column = pd.Series(_cells(column), dtype=object)
        codes, texts = numbered_text(column.array)
        cells = _cells(pd.Series(texts, dtype=object))
    place: dict[str, int] = {}  # some categories do not occur
    number = np.full(len(cells) + 1, -1, dtype=np.intp)
    for code in pd.unique(codes).tolist():
        if code >= 0 and (cell := cells[code]) is not None:
            number[code] = place.setdefault(cell, len(place))
    return number[codes], list(place)


def _cells(column: pd.Series) -> Cells:
    """Return values as the texts that a CSV file would have; never raises."""
    try:
        return encode(column)[1]
    except Exception:  # no file keeps them, and any object may be among them
        return list(map(_text, column))


def _text(value: object) -> str | None:
    if kind_of_missing(value) is not None:
        return None
    try:
        return printable(str(value))
    except Exception:  # objects may raise anything
        return type(value).__name__
