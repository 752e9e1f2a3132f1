"""Cells of an array → what they add to each leaf. Secret: nothing here may leave the package.

Each cell is read separately, and cells of one leaf are added up block by block, where the array lives.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import accumulate, product
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.safe_errors import silently
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["check_cells", "sum_cells"]

Read = Callable[[npt.NDArray[Any]], IntArray]


def check_cells(array: xr.DataArray) -> None:
    """Check that the cells are numbers, by their type alone.

    Raises
    ------
    ArgumentError
        If they are of a type that holds no real numbers.
    """
    dtype: Any = array.dtype
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        raise ArgumentError(
            "array",
            f"must hold numbers, not {dtype}.",
            hint="convert the cells, for example with array.astype(float).",
        )


def sum_cells(
    array: xr.DataArray, dims: Sequence[Hashable], leaf: IntArray, n_leaves: int, quantity: Quantity
) -> IntArray:
    """Add up the cells of each leaf.

    Parameters
    ----------
    array : xarray.DataArray
        Of numbers. One that dask holds is added up by dask, block by block, and only the sums are loaded.
    dims : sequence of hashable
        The dimensions that are added up. The others keep their places.
    leaf : numpy.ndarray of int64, of the shape of `dims`
        The leaf of each cell, -1 where it belongs to none.
    n_leaves : int
    quantity : Quantity
        What the cells hold: counts, or values that are clipped and brought to the grid.

    Returns
    -------
    numpy.ndarray of int64, shape (..., n_leaves)
        The shape of the other dimensions, and the leaves.

    Raises
    ------
    ArgumentError
        If the cells cannot be loaded. The message tells nothing about them.

    Notes
    -----
    **Privacy.** What a cell adds depends on that cell alone. A count is cut to the range from 0 to 2**61 over
    the number of cells, so that no sum can overflow. One of floating point also ends where its type begins
    to leave whole numbers out (2**11 in 16 bits, 2**24 in 32, 2**53 in 64): beyond, one record more may move
    a cell by two and more. So where a record moves a whole count by one, it moves what is added by one or
    not at all. Fractions, which no number of records makes, are rounded to the nearest whole number, as files
    that scale their numbers give 2.9999999 for 3. A value that is missing adds nothing.
    """
    others = [dim for dim in array.dims if dim not in dims]
    shape = tuple(array.sizes[dim] for dim in others)
    variable = array.variable.transpose(*others, *dims)
    read = _reading(quantity, variable.size)

    def add_up() -> IntArray:
        sums = np.zeros((*shape, n_leaves), dtype=np.int64)
        for place, leaves, part in _parts(variable, leaf, read):
            at: Any = (*place, leaves)
            sums[at] += part
        return sums

    failure = ArgumentError(
        "array",
        "cannot be loaded.",
        hint="check the file, or the graph of dask, that it stands for, and that there is memory for it.",
    )
    return silently(add_up, failure)


def _parts(
    variable: xr.Variable, leaf: IntArray, read: Read
) -> Iterator[tuple[tuple[slice, ...], IntArray, IntArray]]:
    """Add up block by block: where it stands among the other dimensions, its leaves, and their sums."""
    n_others = variable.ndim - leaf.ndim
    if not variable.chunks:
        yield (slice(None),) * n_others, *_grouped(np.asarray(variable.data), leaf, read)
        return
    # Only what dask has made has chunks.
    dask, lazy = map(importlib.import_module, ("dask", "dask.array"))
    # One layer of tasks for all blocks: dask takes quadratic time to plan with many layers.
    boxes = lazy.map_blocks(
        _boxed,
        variable.data,
        lazy.from_array(leaf, chunks=variable.chunks[n_others:], name=False),
        read=read,
        dtype=object,
        chunks=tuple((1,) * len(sizes) for sizes in variable.chunks),
        meta=np.empty((0,) * variable.ndim, dtype=object),
    )
    (parts,) = dask.compute(boxes)
    along = [
        [slice(stop - size, stop) for stop, size in zip(accumulate(sizes), sizes, strict=True)]
        for sizes in variable.chunks
    ]
    for place, part in zip(product(*along), parts.ravel(), strict=True):
        yield place[:n_others], *part


def _boxed(block: npt.NDArray[Any], leaf: IntArray, read: Read) -> npt.NDArray[Any]:
    """Add up one block, and hand what it gives as the one entry of an array, as blocks of dask are."""
    box = np.empty((1,) * block.ndim, dtype=object)
    box[(0,) * block.ndim] = _grouped(block, leaf, read)
    return box


def _grouped(block: npt.NDArray[Any], leaf: IntArray, read: Read) -> tuple[IntArray, IntArray]:
    """Add up one block: its leaves, shape (n,), and their sums, shape (..., n)."""
    shape = block.shape[: block.ndim - leaf.ndim]
    cells = np.flatnonzero(leaf.ravel() >= 0)
    cells = cells[np.argsort(leaf.ravel()[cells], kind="stable")]
    leaves, starts = np.unique(leaf.ravel()[cells], return_index=True)
    if not len(leaves) or 0 in shape:
        return leaves, np.zeros((*shape, len(leaves)), dtype=np.int64)
    values = read(block.reshape(-1, leaf.size)[:, cells])
    return leaves, np.add.reduceat(values, starts, axis=1).reshape(*shape, len(leaves))


def _reading(quantity: Quantity, n_cells: int) -> Read:
    """Tell how cells become whole numbers."""
    if quantity == COUNT:
        return partial(_counts, largest=2**61 // max(1, n_cells))
    return partial(_units, quantity=quantity)


def _counts(values: npt.NDArray[Any], largest: int) -> IntArray:
    """Read counts: what is negative or missing is 0, and fractions are rounded to the nearest, halves up."""
    if values.dtype.kind == "f":
        numbers = np.nan_to_num(values.astype(np.float64), nan=0.0)
        # The next whole number is no number of this type, or not of the one that it is read as.
        largest = min(largest, 2 ** (min(np.finfo(values.dtype).nmant, 52) + 1))
        numbers = np.clip(numbers, 0, largest)
        whole = np.floor(numbers)
        return np.asarray((whole + (numbers - whole >= 0.5)).astype(np.int64))
    if values.dtype == np.uint64:
        return np.asarray(np.minimum(values, np.uint64(largest)).astype(np.int64))
    return np.asarray(np.clip(values.astype(np.int64), 0, largest))


def _units(values: npt.NDArray[Any], quantity: Quantity) -> IntArray:
    """Read values on the grid of a quantity; what is missing adds nothing."""
    numbers = values.astype(np.float64)
    missing = np.isnan(numbers)
    numbers[missing] = 0.0
    return np.asarray(np.where(missing, 0, quantity.to_units(numbers)))
