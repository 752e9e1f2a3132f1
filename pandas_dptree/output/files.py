"""Files of released tables that keep the types of their keys, their provenance and their plan.

A CSV file holds the values. A JSON file beside it, ``counts.csv.json`` for ``counts.csv``, describes them::

    {"format": "pandas_dptree table, version 1",
     "sha256": "<SHA-256 of the bytes of the CSV file>",
     "columns": [{"name": "level", "type": ...}, ...],
     "attrs": {...},
     "plan": {...}}

``"altered"`` says so if the values are not those of the release: see `pandas_dptree.output.table_digest`.
`pandas_dptree.output.column_types` describes the types, and `pandas_dptree.output.csv_text` the CSV file. A
column of the index also has ``"index": true``. A Parquet file holds the same description, without ``sha256``,
in its metadata. Values for which Parquet has no type are stored as text.

**Privacy.** Files hold what the table shows, its provenance and its plan, and nothing else: no row numbers,
and no other ``attrs``.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pandas_dptree.errors import (
    ArgumentError,
    DPTreeError,
    MissingExtraError,
    kind_of_object,
    listed,
    quote,
    why_unreadable,
)
from pandas_dptree.output.atomic_files import write_together
from pandas_dptree.output.column_types import (
    Cells,
    encode,
    encode_value,
    is_plain_text,
    names_as_text,
)
from pandas_dptree.output.csv_text import join_columns
from pandas_dptree.output.restored import (
    FORMAT,
    METADATA,
    description_path,
    is_kept_as_text,
    read_csv,
    read_parquet,
    values_alone,
)
from pandas_dptree.output.sheets import LAYOUTS, Layout
from pandas_dptree.output.table_digest import alteration
from pandas_dptree.output.workbooks import write_workbook
from pandas_dptree.signatures import public

__all__ = ["TableFile", "check_packages", "read_file", "to_file", "write_book"]

_SUFFIXES: Final = (".csv", ".parquet", ".xlsx")


@public
def to_file(
    released: pd.DataFrame | Mapping[str, pd.DataFrame],
    path: str | PathLike[str],
    *,
    layout: Layout = "nested",
    replace: bool = True,
) -> None:
    """Write a released table to a file from which `read_file` restores it exactly, or to a workbook.

    A ``.csv`` or ``.parquet`` file keeps the levels and their order, the types of the keys (``"00501"`` stays
    text), each number bit for bit, the statement of how the table is protected (``attrs["dp"]``), and its
    plan.

    Parameters
    ----------
    released : pandas.DataFrame or mapping of str to pandas.DataFrame
        A table that this package released, whole or filtered, or one level of it. For a workbook, also
        several tables by name.
    path : str or path
        A ``.csv`` file, which is accompanied by a description in JSON: ``counts.csv.json`` beside
        ``counts.csv``. Or a ``.parquet`` file, which holds its description. Or an ``.xlsx`` file, a workbook
        to read and to print, from which the table cannot be restored.
    layout : {"nested", "levels"}, default "nested"
        Of a workbook: each table on one sheet, whose rows fold by level; or a sheet per level.
    replace : bool, default True
        Whether to replace existing files. Pass False to keep an earlier release, since releasing the same
        records again would spend the budget again.

    Raises
    ------
    ArgumentError
        If the table has no ``attrs["dp"]``, or holds values that could not be restored; if a file cannot be
        written, or exists and `replace` is False; if a sheet of a workbook would have more than
        1,048,575 rows.
    MissingExtraError
        If a Parquet file is to be written without pyarrow, or a workbook without openpyxl.

    Notes
    -----
    **Privacy**: the files hold the table, how it is protected and its plan, all of which are public, so they
    cost nothing. An index of row numbers is not kept, nor are other ``attrs``. Categories that do not occur
    are kept, since they belong to the type of the column; those of a released table are public.

    In the CSV file, a missing value is an empty field, and an empty text is ``""``. Both files are written
    completely or not at all. If the computer stops between the two, `read_file` refuses them.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA", "CA", "NY"], "zip": ["94601", "93650", "00501"]})
    >>> counts = records.dp.tree_counts(["state", "zip"], epsilon=1.0, domain="observed")
    >>> dpt.to_file(counts, "counts.csv")  # doctest: +SKIP
    >>> dpt.read_file("counts.csv").equals(counts)  # doctest: +SKIP
    True
    """
    path = _checked_path(path)
    suffix = path.suffix.lower()
    if layout not in LAYOUTS or (layout != "nested" and suffix != ".xlsx"):
        raise ArgumentError(
            "layout",
            f"is {quote(layout)}, which no {suffix} file has.",
            hint=f"choose one of {listed(LAYOUTS)} for an .xlsx file, or leave it out.",
        )
    check_packages(suffix, "Writing")
    write = write_book if suffix == ".xlsx" else _write_exact
    try:
        write(released, path, layout=layout, replace=replace)
    except FileExistsError as error:
        raise ArgumentError(
            "path",
            f"is a file that already exists: {error.filename!r}.",
            hint="name another file, or pass replace=True.",
        ) from None
    except OSError:
        raise ArgumentError(
            "path",
            f"cannot be written: {str(path)!r}.",
            hint="name a file in a folder that exists, and that you may write to.",
        ) from None


@public
def read_file(path: str | PathLike[str]) -> pd.DataFrame:
    """Read a released table from a file that `to_file` or the shell command wrote.

    Parameters
    ----------
    path : str or path
        The ``.csv`` file, with its description beside it, or the ``.parquet`` file.

    Returns
    -------
    pandas.DataFrame
        The same table: its rows in order, their types, and ``attrs``. Rows are numbered from 0, unless the
        table was indexed by keys, bins or probabilities.

    Raises
    ------
    ArgumentError
        If the file or its description cannot be read, or if the two do not fit each other: for example,
        because a spreadsheet program saved the CSV file again.
    MissingExtraError
        If a Parquet file is to be read without pyarrow.

    Notes
    -----
    **Privacy**: reading costs nothing. What a file states about its protection proves nothing.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> counts = dpt.read_file("counts.csv")  # doctest: +SKIP
    >>> counts.attrs["dp"]["epsilon"]  # doctest: +SKIP
    1.0
    """
    path = _checked_path(path)
    suffix = path.suffix.lower()
    if suffix == ".xlsx":
        raise ArgumentError(
            "path",
            f"is a workbook, which does not keep a table exactly: {str(path)!r}.",
            hint="write the table to a .csv or .parquet file too, and read that.",
        )
    check_packages(suffix, "Reading")
    read = read_parquet if suffix == ".parquet" else read_csv
    try:
        return read(path)
    except DPTreeError:
        raise
    except OSError as error:
        why = why_unreadable(path, error.strerror or "the system refuses it")
        raise ArgumentError(
            "path", f"cannot be read: {str(path)!r}: {why}.", hint="correct the path, or the file."
        ) from None
    except Exception:  # whatever pandas, pyarrow or Python raise for values of another type
        raise ArgumentError(
            "path",
            f"does not match its description: {str(path)!r}.",
            hint=f"restore the original files, both from the same release; {values_alone(path)}",
        ) from None


def check_packages(suffix: str, doing: str) -> None:
    """Raise a `MissingExtraError` if a kind of file needs a package that is not installed."""
    needed = {".parquet": ("Parquet", "pyarrow"), ".xlsx": ("workbooks", "openpyxl")}
    if suffix not in needed:
        return
    what, package = needed[suffix]
    try:
        importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(f"{doing} {what}", package=package, hint="or use a .csv file") from None


def write_book(released: Any, path: Path, *, layout: Layout = "nested", replace: bool = True) -> None:
    """Write released tables to a workbook: several by name, or one, which is named like the file."""
    tables = dict(released) if isinstance(released, Mapping) else {path.stem: released}
    if not tables or not all(isinstance(name, str) for name in tables):
        raise ArgumentError(
            "released", "must hold tables by names, which are texts.", hint='for example {"visits": counts}.'
        )
    for table in tables.values():
        _attrs_of(table)
    write_workbook(tables, path, layout=layout, replace=replace)


def _write_exact(released: Any, path: Path, *, layout: Layout, replace: bool) -> None:
    """Write one table to a file from which it can be restored, which has no layout."""
    TableFile.of(released).write(path, replace=replace)


@dataclass(frozen=True, eq=False)
class TableFile:
    """A released table, as it is written to files.

    `columns` are those of the index, then the others; `names` are their names, and `fields` describe them.
    `cells` are their values as text.
    """

    columns: list[pd.Series]
    names: list[str]
    fields: list[dict[str, Any]]
    cells: list[Cells]
    attrs: dict[str, Any]
    plan: dict[str, Any] | None
    alteration: str

    @classmethod
    def of(cls, released: Any) -> TableFile:
        """Describe a released table, or refuse one that could not be restored exactly."""
        attrs, plan = _attrs_of(released)
        columns, names, fields, cells = [], [], [], []
        for name, column, in_index in _columns_of(released):
            try:
                field = {"name": encode_value(name)}
                field["type"], texts = encode(column)
            except (TypeError, ValueError, RecursionError) as error:
                raise ArgumentError(
                    "released",
                    f"has a column that a file cannot keep exactly: {quote(name)} ({error}).",
                    hint="convert it first, for example with table.astype({...: str}).",
                ) from None
            columns.append(column)
            names.append(name)
            fields.append({**field, "index": True} if in_index else field)
            cells.append(texts)
        if not columns or len({json.dumps(field["name"]) for field in fields}) < len(fields):
            raise ArgumentError(
                "released", "has no columns, or several of one name.", hint="give each column its own name."
            )
        return cls(columns, names_as_text(names), fields, cells, attrs, plan, alteration(released))

    @property
    def csv(self) -> str:
        """The text of the CSV file."""
        return join_columns(self.names, self.cells)

    def write(self, path: Path, *, replace: bool) -> None:
        """Write the table, and its description: all files, or none."""
        if path.suffix.lower() == ".parquet":
            write_together({path: self._fill_parquet}, replace=replace)
            return
        content = self.csv.encode()
        text = self._description(sha256=hashlib.sha256(content).hexdigest())
        files: dict[Path, Callable[[Path], object]] = {
            description_path(path): lambda whole: whole.write_text(f"{text}\n", encoding="utf-8"),
            path: lambda whole: whole.write_bytes(content),
        }
        write_together(files, replace=replace)

    def _description(self, **digest: str) -> str:
        description = {
            "format": FORMAT, **digest, "columns": self.fields, "attrs": self.attrs, "plan": self.plan
        }  # fmt: skip
        if self.alteration:
            description["altered"] = self.alteration
        return json.dumps(description, allow_nan=False)

    def _fill_parquet(self, path: Path) -> None:
        """Write columns as pandas does, so that ``pd.read_parquet`` reads them, too; others as text."""
        arrow, parquet = map(importlib.import_module, ("pyarrow", "pyarrow.parquet"))
        columns = [
            column if _in_parquet(field["type"]) else pd.Series(cells, dtype=object)
            for column, field, cells in zip(self.columns, self.fields, self.cells, strict=True)
        ]
        try:
            columns = [  # old versions of pyarrow do not notice when milliseconds overflow
                column.dt.as_unit("ms") if str(column.dtype).startswith("datetime64[s") else column
                for column in columns
            ]
            frame = pd.DataFrame(dict(enumerate(columns))).set_axis(self.names, axis="columns")
            table = arrow.Table.from_pandas(frame, preserve_index=False)
            metadata = {
                **table.schema.metadata,
                b"PANDAS_ATTRS": json.dumps({"dp": self.attrs}).encode(),
                METADATA: self._description().encode(),
            }
            parquet.write_table(table.replace_schema_metadata(metadata), path)
        except (TypeError, ValueError, NotImplementedError):
            raise ArgumentError(
                "released", "has values that Parquet cannot hold.", hint="write a .csv file."
            ) from None


def _checked_path(given: Any) -> Path:
    try:
        path = Path(given)
    except TypeError:
        raise ArgumentError(
            "path", f"must be a path, not {kind_of_object(given)}.", hint='for example "counts.csv".'
        ) from None
    if path.suffix.lower() not in _SUFFIXES:
        raise ArgumentError(
            "path",
            f"is a file of unknown type: {str(path)!r}.",
            hint=f"name the table itself, a {' or '.join(_SUFFIXES)} file.",
        )
    return path


def _attrs_of(released: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the provenance and the plan of a table, which must be plain JSON."""
    if not isinstance(released, pd.DataFrame):
        raise ArgumentError(
            "released",
            f"must be a released table, not {kind_of_object(released)}.",
            hint="pass the frame that a release returned; of a distribution, its cdf() or histogram().",
        )
    attrs, plan = released.attrs.get("dp"), released.attrs.get("dp_plan", "null")
    if "dp_derived" in released.attrs:
        raise ArgumentError(
            "released",
            "has numbers derived from a released table.",
            hint="save the released table, from which they follow; or use DataFrame.to_csv.",
        )
    if not isinstance(attrs, dict):
        raise ArgumentError(
            "released",
            'is not a released table: it lacks attrs["dp"], which most operations on frames lose.',
            hint="copy the attributes of the released table, as in table.attrs.update(counts.attrs); or use "
            "DataFrame.to_csv, which writes the values of any frame, and nothing else.",
        )
    try:
        plan = json.loads(plan)
        exact = json.loads(json.dumps([attrs, plan], allow_nan=False)) == [attrs, plan]
    except (TypeError, ValueError, RecursionError):
        exact = False
    if not exact or not isinstance(plan, dict | None):
        raise ArgumentError(
            "released",
            'has an attrs["dp"] or attrs["dp_plan"] that is not plain JSON.',
            hint="copy both from the released table, as in table.attrs.update(counts.attrs).",
        )
    return attrs, plan


def _columns_of(released: pd.DataFrame) -> Iterator[tuple[Hashable, pd.Series, bool]]:
    """List the names and values of the columns, those of the index first, and whether they are in the index.

    An index of row numbers is left out.
    """
    index = released.index
    numbered = index.nlevels == 1 and index.name is None and pd.api.types.is_integer_dtype(index.dtype)
    if not numbered:
        if None in index.names:
            raise ArgumentError(
                "released",
                "has an index without a name.",
                hint="name it with table.rename_axis(...), or drop it with table.reset_index(drop=True).",
            )
        for level, name in enumerate(index.names):
            values = index.get_level_values(level)
            yield name, pd.Series(values, dtype=values.dtype), True
    if isinstance(released.columns, pd.MultiIndex):
        raise ArgumentError(
            "released", "has columns of several levels.", hint="give each column a single name."
        )
    for place, name in enumerate(released.columns):
        yield name, released.iloc[:, place].reset_index(drop=True), False


def _in_parquet(kind: Any) -> bool:
    """Whether Parquet can store a column of this type as it is, not only as text."""
    return not is_kept_as_text(kind) or is_plain_text(kind) or is_plain_text(kind.get("category"))
