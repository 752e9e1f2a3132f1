"""The files of a run: made of released tables alone, at no cost, and written whole or not at all."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError, quote
from pandas_dptree.hierarchy.margin_names import level_column
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.ledger.store import sync_folder
from pandas_dptree.output.crossed_columns import axes_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.derived.matching import rows_of_paths
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.files import to_file
from pandas_dptree.output.pages.page import page
from pandas_dptree.output.released import Released
from pandas_dptree.output.workbooks import write_workbook
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.programmes.keeping import Shelf
from pandas_dptree.programmes.overwriting import PAGE, is_zarr
from pandas_dptree.programmes.programme import Checked

__all__ = ["can_combine", "clear_unfinished", "page_content", "write_outputs"]

_UNFINISHED: Final = ".dptree-"
"""How the names of temporary folders begin: what a run that was killed left there."""


def write_outputs(
    checked: Checked, tables: Mapping[str, Any], shelf: Shelf, say: Callable[[str], object]
) -> list[str]:
    """Write the files of tables, and the page if all tables are there; return their names.

    All files are made before the first of them replaces an earlier one, the page last. If the page cannot be
    made, the files are written, and an error says so that is none of arguments: the tables are kept.
    """
    folder, kinds = checked.outputs.folder, checked.outputs.write
    shown = {
        name: shelf.with_estimates(name, checked.tables[name].plan, table) for name, table in tables.items()
    }
    with tempfile.TemporaryDirectory(dir=folder, prefix=_UNFINISHED) as scratch:
        made = Path(scratch)
        for name, table in tables.items():
            for kind in kinds:
                if kind == "xlsx":
                    estimates = {name: _frame(shown[name])}
                    write_workbook({name: _frame(table)}, made / f"{name}.xlsx", estimates=estimates)
                elif kind != "html":
                    _WRITERS[kind](_frame(table), made / f"{name}.{kind}")
        failure: Exception | None = None
        if "html" in kinds and tables.keys() == checked.tables.keys():
            try:
                _write_page(checked, shown, shelf, made / PAGE, say)
            except Exception as error:  # raised below: it must not cost the other files
                failure = error
        names = sorted((path.name for path in made.iterdir()), key=lambda name: (name == PAGE, name))
        for name in names:
            _move(made / name, folder / name)
    sync_folder(folder)
    if isinstance(failure, DPTreeError):
        raise DPTreeError(
            f"The page cannot be made: {failure.fact} The tables are kept, and all other files are written.",
            hint=f"correct [page] and run again, which costs nothing: {failure.hint}",
        ) from None
    if failure is not None:
        raise failure
    return names


def clear_unfinished(folder: Path) -> None:
    """Remove the temporary folders of runs that were killed."""
    for path in [*folder.glob(f"{_UNFINISHED}*"), *folder.glob(f".released/{_UNFINISHED}*")]:
        shutil.rmtree(path, ignore_errors=True)


def _move(made: Path, path: Path) -> None:
    """Put a file, or a folder of Zarr, in the place of an earlier one."""
    if path.is_dir() and not path.is_symlink():  # which no rename replaces
        if not (made.is_dir() and is_zarr(path)):
            raise DPTreeError(
                f"The outputs would replace the folder {quote(path.name)}, which no run has made.",
                hint="move it elsewhere, and run again: the tables are kept, which costs nothing.",
            )
        os.rename(path, made.with_name(f"{made.name}.before"))
    os.replace(made, path)


def _frame(table: Any) -> pd.DataFrame:
    """Return what a file holds of a released table: of a distribution, its cumulative counts."""
    return table.cdf() if isinstance(table, Distribution) else table


def _write_zarr(table: pd.DataFrame, path: Path) -> None:
    try:
        importlib.import_module("zarr")
    except ImportError:
        raise MissingExtraError("Writing Zarr", package="zarr") from None
    as_tree(table).to_zarr(path, consolidated=False)


def as_tree(table: pd.DataFrame) -> xr.DataTree:
    """Return a table as a tree of datasets, one a level or margin, each with a row for each of its nodes."""
    attrs = {"dp": json.dumps(table.attrs["dp"])}
    if axes_of(table):
        margins = {f"/{name}": dataset for name, dataset in _margins(CrossedTable.of(table))}
        return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **margins})
    if "level" not in table.columns:
        return xr.DataTree(_rows(table.reset_index(), "row").assign_attrs(attrs))
    levels = table.groupby("level", observed=True, sort=False)
    datasets = {f"/{str(name).replace('/', '_')}": _rows(part, str(name)) for name, part in levels}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **datasets})


def _rows(part: pd.DataFrame, dimension: str) -> xr.Dataset:
    """Return rows as a dataset of one dimension."""
    columns = part.drop(columns="level", errors="ignore").dropna(axis="columns", how="all")
    return xr.Dataset({str(name): (f"{dimension} rows", _plain(each)) for name, each in columns.items()})


def _margins(table: CrossedTable) -> Iterator[tuple[str, xr.Dataset]]:
    """Return the name and the dataset of each margin of a whole table: a dimension for each axis."""
    taken = {level_column(axis) for axis in table.axes} | {
        key for own in table.axes.values() for key in own.keys
    }
    values = [name for name in table.table.columns if name not in taken]
    for margin, rows in table.margins:
        nodes = table.nodes[rows]
        rows = rows[np.lexsort(nodes.T[::-1])]
        dims: list[str] = []
        shape: list[int] = []
        coordinates: dict[str, Any] = {}
        for place, (own, level) in enumerate(zip(table.axes.values(), margin, strict=True)):
            if level:
                here = own.table.iloc[np.unique(nodes[:, place])]
                dims.append(f"{own.keys[level - 1]} rows")
                shape.append(len(here))
                coordinates |= {str(key): (dims[-1], _plain(here[key])) for key in own.keys[:level]}
        numbers = {str(name): (dims, _plain(table.table[name].iloc[rows]).reshape(shape)) for name in values}
        yield ",".join(dim.removesuffix(" rows") for dim in dims) or ROOT, xr.Dataset(numbers | coordinates)


def _plain(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return the values of a column; what is no number or time is text."""
    values = np.asarray(column)
    return values if values.dtype.kind in "iufbM" else np.asarray(column.astype(str), str)


_WRITERS: Final[Mapping[str, Callable[[pd.DataFrame, Path], object]]] = {
    "parquet": to_file,
    "csv": to_file,
    "zarr": _write_zarr,
}
"""How a table is written, by the ending of its file."""


def _write_page(
    checked: Checked, shown: Mapping[str, Any], shelf: Shelf, path: Path, say: Callable[[str], object]
) -> None:
    """Write the page. A section of changes finds the table of the period before, or is left out."""

    def before(name: str) -> Any | None:
        earlier = shelf.before(name)
        if earlier is None:
            say(f"Page: the changes of {name} are left out: no table of the period before was kept.")
        return earlier

    page(**page_content(checked, shown, before), ledger=shelf.ledger).write(path)


def page_content(
    checked: Checked, tables: Mapping[str, Any], before: Callable[[str], Any | None]
) -> dict[str, Any]:
    """Return the arguments of `page`: `before` finds the earlier release of a table."""
    options, shown, labels = checked.page, dict(tables), _labels(checked)
    every: list[Mapping[str, Any]] = [{"table": name} for name in tables]
    show: list[Mapping[str, Any]] = []
    for stated in options.show or every:
        entry = _in_full(checked, stated)
        if entry.get("as") == "change" and "before" not in entry and "table" in entry:
            name = entry["table"]
            earlier = before(name)
            if earlier is None:
                continue
            shown[f"{name}, before"] = earlier
            labels[f"{name}, before"] = checked.budget.note_before or Path(checked.outputs.before or "").name
            entry = {
                "now": checked.budget.note or checked.outputs.folder.name,
                **entry,
                "before": f"{name}, before",
            }
        show.append(entry)
    if options.combine:
        paths = [path for area in options.combine.values() for path in area]
        own = [name for name, table in tables.items() if can_combine(checked, name, table, paths)]
        show += [{"table": name, "as": "combine", "areas": options.combine} for name in own]
    return {
        "tables": shown,
        "title": options.title,
        "show": show or every,
        "publisher": options.publisher,
        "notes": options.notes,
        "labels": labels,
        "language": options.language,
        "interactive": options.interactive,
        "reliability": options.reliability,
        "blank": options.blank,
    }


def _in_full(checked: Checked, entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace short names of levels in the margin of an entry."""
    margin, name = entry.get("margin"), entry.get("table")
    hierarchy = checked.hierarchies.get(name) if isinstance(name, str) else None
    if hierarchy is None or not isinstance(margin, dict):
        return entry
    return {**entry, "margin": {axis: hierarchy.aliases.get(level, level) for axis, level in margin.items()}}


def can_combine(checked: Checked, name: str, table: Any, paths: Sequence[Sequence[Any]]) -> bool:
    """Whether a table is one of counts that has all of these nodes."""
    if checked.tables[name].verb != "counts" or not isinstance(checked.tables[name].plan, AdditivePlan):
        return False
    with suppress(ArgumentError):
        rows_of_paths(Released.of(table), paths, "combine")
        return True
    return False


def _labels(checked: Checked) -> dict[Any, Any]:
    """Return the texts for levels, columns and tables, and those for the keys of levels."""
    labels: dict[Any, Any] = dict(checked.page.labels)
    for hierarchy in checked.hierarchies.values():
        for level, keys in hierarchy.labels.items():
            labels[level] = (labels[level], keys) if level in labels else keys
    return labels
