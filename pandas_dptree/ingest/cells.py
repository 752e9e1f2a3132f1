"""Add up the cells of an array per leaf. Secret: nothing here may leave the package.

Each cell is read separately, and the cells of a leaf are added up block by block, where the array is stored.
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
    """Check by its type alone that an array holds real numbers."""
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
    """Add up the cells of each leaf along `dims`; the other dimensions are kept, with the leaves last.

    A dask array is added up by dask, block by block, and only the sums are loaded.

    **Privacy.** What a cell adds depends on that cell alone. A count is clipped to the range from 0 to 2**61
    over the number of cells, so that no sum can overflow. Floating-point counts are also clipped where their
    type no longer holds all whole numbers (2**11 in 16 bits, 2**24 in 32, 2**53 in 64): beyond, one more
    record may change a cell by two or more. So if a record changes a whole count by one, it changes what is
    added by one or not at all. Fractions, which no number of records makes, are rounded to the nearest whole
    number, because scaled files store 3 as 2.9999999, for example. A missing value adds nothing.
    """
    others = [dim for dim in array.dims if dim not in dims]
    shape = tuple(array.sizes[dim] for dim in others)
    variable = array.variable.transpose(*others, *dims)
    read = _reader(quantity, variable.size)

    def add_up() -> IntArray:
        sums = np.zeros((*shape, n_leaves), dtype=np.int64)
        for place, leaves, part in _parts(variable, leaf, read):
            at: Any = (*place, leaves)
            sums[at] += part
        return sums

    failure = ArgumentError(
        "array",
        "cannot be loaded.",
        hint="check the file or the dask graph behind it, and that it fits into memory.",
    )
    return silently(add_up, failure)


def _parts(
    variable: xr.Variable, leaf: IntArray, read: Read
) -> Iterator[tuple[tuple[slice, ...], IntArray, IntArray]]:
    """Add up block by block: yield its position in the other dimensions, its leaves, and their sums."""
    n_others = variable.ndim - leaf.ndim
    if not variable.chunks:
        yield (slice(None),) * n_others, *_grouped(np.asarray(variable.data), leaf, read)
        return
    # Only dask arrays have chunks.
    dask, lazy = map(importlib.import_module, ("dask", "dask.array"))
    # One layer of tasks for all blocks: dask's planning time is quadratic in the number of layers.
    boxes = lazy.map_blocks(
        _grouped_in_box,
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


def _grouped_in_box(block: npt.NDArray[Any], leaf: IntArray, read: Read) -> npt.NDArray[Any]:
    """Add up one block; return the result as the only entry of an array, as dask requires."""
    box = np.empty((1,) * block.ndim, dtype=object)
    box[(0,) * block.ndim] = _grouped(block, leaf, read)
    return box


def _grouped(block: npt.NDArray[Any], leaf: IntArray, read: Read) -> tuple[IntArray, IntArray]:
    """Add up one block: return its leaves, shape (n,), and their sums, shape (..., n)."""
    shape = block.shape[: block.ndim - leaf.ndim]
    cells = np.flatnonzero(leaf.ravel() >= 0)
    cells = cells[np.argsort(leaf.ravel()[cells], kind="stable")]
    of_cells = leaf.ravel()[cells]
    starts = np.flatnonzero(np.diff(of_cells, prepend=-1))
    leaves = of_cells[starts]
    if not len(leaves) or 0 in shape:
        return leaves, np.zeros((*shape, len(leaves)), dtype=np.int64)
    values = read(block.reshape(-1, leaf.size)[:, cells])
    return leaves, np.add.reduceat(values, starts, axis=1).reshape(*shape, len(leaves))


def _reader(quantity: Quantity, n_cells: int) -> Read:
    """Return the function that converts cells to whole numbers."""
    if quantity == COUNT:
        return partial(_counts, largest=2**61 // max(1, n_cells))
    return partial(_units, quantity=quantity)


def _counts(values: npt.NDArray[Any], largest: int) -> IntArray:
    """Read counts: negative and missing ones are 0, and fractions are rounded to the nearest, halves up."""
    if values.dtype.kind == "f":
        numbers = np.nan_to_num(values.astype(np.float64), nan=0.0)
        # The next whole number is not representable in this type, or in float64.
        largest = min(largest, 2 ** (min(np.finfo(values.dtype).nmant, 52) + 1))
        numbers = np.clip(numbers, 0, largest)
        whole = np.floor(numbers)
        return np.asarray((whole + (numbers - whole >= 0.5)).astype(np.int64))
    if values.dtype == np.uint64:
        return np.asarray(np.minimum(values, np.uint64(largest)).astype(np.int64))
    return np.asarray(np.clip(values.astype(np.int64), 0, largest))


def _units(values: npt.NDArray[Any], quantity: Quantity) -> IntArray:
    """Read values on the grid of a quantity; missing ones add nothing."""
    numbers = values.astype(np.float64)
    missing = np.isnan(numbers)
    numbers[missing] = 0.0
    return np.asarray(np.where(missing, 0, quantity.to_units(numbers)))
