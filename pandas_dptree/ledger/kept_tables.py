"""The bytes of a released table, from which it is restored exactly: what a ledger keeps of a release.

After a line that names the format come the SHA-256 of the rest, a letter that says whether the rest is
compressed, and the rest: the length of a text in JSON, that text, and blocks of bytes. The text describes the
table. Numbers are in blocks, as they are in memory; texts are in UTF-8, each distinct one once. The text may
name only the few types that are listed here, so reading it runs no code that it brings along.

**Privacy**: a function of the released table. What a mask hides is not kept.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from pandas.api.extensions import ExtensionArray
from xarray.indexes import PandasIndex, PandasMultiIndex

from pandas_dptree.distribution.factorization import FactorizationStrategy
from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.errors import LedgerError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.weighted_sums import WeightedSums
from pandas_dptree.output.column_types import (
    MISSING,
    decode,
    decode_value,
    encode,
    encode_value,
    kind_of_missing,
    name_of_text,
    numbered_text,
    text_dtype,
)
from pandas_dptree.output.distribution import Distribution

__all__ = ["from_bytes", "to_bytes"]

Arrays = Mapping[str, Sequence[npt.NDArray[Any]]]

_FORMAT: Final = b"pandas_dptree kept table, version "
_VERSION: Final = b"1"
_WORTHWHILE: Final = 0.9
"""A table is compressed if that makes it shorter than this part."""


def to_bytes(released: Any, extra: Arrays | None = None) -> bytes:
    """Return what `from_bytes` restores a release from, and arrays beside it; the same table, the same bytes.

    `released` is a frame, a distribution, an object of xarray, or a mapping of these. Raises a `LedgerError`
    if it holds an object of another type.
    """
    blocks: list[bytes] = []
    kept = {} if extra is None else {name: list(arrays) for name, arrays in extra.items()}
    try:
        content = _packed((released, kept), blocks)
        text = json.dumps([content, list(map(len, blocks))], separators=(",", ":"), allow_nan=False).encode()
    except Exception:  # whatever pandas, xarray or Python raise; the table must not be lost
        raise LedgerError(
            "A released table cannot be kept, for it holds objects of a type that cannot be restored.",
            hint="convert its keys, for example to text, before the next release.",
        ) from None
    body = b"".join([len(text).to_bytes(8, "little"), text, *blocks])
    short = zlib.compress(body, 1)
    rest = b"z" + short if len(short) < _WORTHWHILE * len(body) else b"-" + body
    return b"".join([_FORMAT, _VERSION, b"\n", hashlib.sha256(rest).digest(), rest])


def from_bytes(data: bytes) -> tuple[Any, dict[str, list[npt.NDArray[Any]]]]:
    """Restore a release and the arrays beside it; raises a `LedgerError` unless all bytes are as written."""
    first, _, rest = data.partition(b"\n")
    if first != _FORMAT + _VERSION:
        newer = first.removeprefix(_FORMAT)
        known = first.startswith(_FORMAT) and newer.isdigit()
        raise LedgerError(
            f"A kept table has the format {newer.decode()}, which this version of pandas_dptree cannot read."
            if known
            else "A kept table does not begin as one.",
            hint="install a newer version." if known else "restore the ledger, and its files, from a backup.",
        )
    digest, body = rest[:32], rest[32:]
    damaged = LedgerError(
        "A kept table was changed or damaged after it was written.",
        hint="restore the ledger, and the files beside it, from a backup.",
    )
    if hashlib.sha256(body).digest() != digest:
        raise damaged
    try:
        whole = memoryview(zlib.decompress(body[1:]) if body[:1] == b"z" else body[1:])
        start = 8 + int.from_bytes(whole[:8], "little")
        content, lengths = json.loads(bytes(whole[8:start]))
        blocks = []
        for length in lengths:
            blocks.append(whole[start : start + length])
            start += length
        released, extra = _unpacked(content, blocks)
    except Exception:  # whatever pandas, xarray or zlib raise for bytes that were made up
        raise damaged from None
    return released, extra


Blocks = list[Any]


def _packed(value: Any, blocks: Blocks) -> Any:
    """Describe a value in JSON, and add its numbers and texts to the blocks."""
    if value is None or type(value) in (bool, int) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is str:
        return value if value.isascii() else {"text": value.encode("utf-8", "surrogatepass").hex()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcmMSU":
        blocks.append(np.ascontiguousarray(value).tobytes())
        return {"numbers": [value.dtype.str, list(value.shape), len(blocks) - 1]}
    for kind in _KINDS:
        if kind.holds(value):
            return {kind.name: [_packed(part, blocks) for part in kind.parts(value)]}
    return {"value": encode_value(value)}


def _unpacked(described: Any, blocks: Blocks) -> Any:
    """Restore what `_packed` described."""
    if not isinstance(described, dict):
        return described
    ((name, content),) = described.items()
    if name == "text":
        return bytes.fromhex(content).decode("utf-8", "surrogatepass")
    if name == "numbers":
        dtype, shape, place = content
        return np.frombuffer(blocks[place], np.dtype(dtype)).reshape(shape).copy()
    if name == "value":
        return decode_value(content)
    return _BY_NAME[name].made(*(_unpacked(part, blocks) for part in content))


class _Kind(NamedTuple):
    """A kind of objects: which are of it, the parts of one, and how it is made of them."""

    name: str
    holds: Callable[[Any], bool]
    parts: Callable[[Any], Sequence[Any]]
    made: Callable[..., Any]


def _kind(of: Any, parts: Callable[[Any], Sequence[Any]], made: Callable[..., Any]) -> _Kind:
    """Return the kind of exactly one type."""
    return _Kind(of.__name__, lambda value: type(value) is of, parts, made)


def _kinds(of: Any, parts: Callable[[Any], Sequence[Any]], made: Callable[..., Any]) -> _Kind:
    """Return the kind of a type and the types derived from it."""
    return _Kind(of.__name__, lambda value: isinstance(value, of), parts, made)


def _is_text(array: Any) -> bool:
    """Whether an array holds texts, besides missing values of at most one kind."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == np.dtype(object)
        and len(others := {kind_of_missing(each) for each in array.flat if type(each) is not str}) < 2
        and None not in others
    )


def _parts_of_text(array: Any) -> Sequence[Any]:
    codes, texts = numbered_text(array)
    letters = np.frombuffer("".join(texts).encode("utf-8", "surrogatepass"), np.uint8)
    return [letters, np.array(list(map(len, texts)), dtype=np.int64), codes.astype(np.int32)]


def _made_of_text(letters: Any, lengths: Any, codes: Any, missing: Any = None) -> npt.NDArray[np.object_]:
    text, ends = letters.tobytes().decode("utf-8", "surrogatepass"), np.cumsum(lengths).tolist()
    texts = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    made: npt.NDArray[np.object_] = _objects([*texts, missing])[codes]
    return made


def _parts_of_texts(array: npt.NDArray[np.object_]) -> Sequence[Any]:
    flat = array.ravel()
    missing = next((value for value in flat if type(value) is not str), None)
    return [*_parts_of_text(flat), list(array.shape), missing]


def _parts_of_objects(array: npt.NDArray[np.object_]) -> Sequence[Any]:
    found: dict[str, tuple[int, Any]] = {}  # by their JSON, which differs for 1 and True
    codes = []
    for value in array.ravel().tolist():
        own: Blocks = []
        key = f"{json.dumps(_packed(value, own))} {b''.join(own).hex()}"
        codes.append(found.setdefault(key, (len(found), value))[0])
    distinct = [value for _, value in found.values()]
    return [list(array.shape), np.array(codes, dtype=np.int32), *distinct]


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _parts_of_index(index: pd.Index) -> Sequence[Any]:
    return [_array(index), index.name, getattr(index, "freqstr", None) if index.dtype.kind in "mM" else None]


def _made_index(array: Any, name: Any, freq: str | None) -> pd.Index:
    index: Any = pd.Index(array, dtype=array.dtype, name=name, tupleize_cols=False, copy=False)
    made: pd.Index = index if freq is None else type(index)(index, freq=freq)
    return made


def _array(values: Any) -> Any:
    """Return the array of a column or an index: of numpy, unless only pandas has its type."""
    return values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array


def _parts_of_masked(array: Any) -> Sequence[Any]:
    missing = array.isna()
    return [array.to_numpy(dtype=array.dtype.numpy_dtype, na_value=0), missing]  # not what the mask hides


def _made_masked(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> ExtensionArray:
    kinds: dict[str, Any] = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    made: ExtensionArray = kinds.get(values.dtype.kind, pd.arrays.IntegerArray)(values, missing)
    return made


def _parts_of_times(array: Any) -> Sequence[Any]:
    if pd.api.types.pandas_dtype(str(array.dtype)) != array.dtype:
        raise TypeError("times in a zone that has no name")
    return [array.asi8, str(array.dtype)]


def _parts_of_zone(zone: datetime.tzinfo) -> Sequence[Any]:
    return _parts_of_times(pd.array([], dtype=pd.DatetimeTZDtype("ns", zone)))[1:]


def _made_zone(name: str) -> Any:
    dtype: Any = pd.api.types.pandas_dtype(name)
    return dtype.tz


def _made_times(numbers: npt.NDArray[np.int64], name: str) -> Any:
    dtype: Any = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, pd.PeriodDtype):
        return pd.arrays.PeriodArray(numbers, dtype=dtype)
    if isinstance(dtype, pd.DatetimeTZDtype):
        in_utc = pd.DatetimeIndex(numbers.view(f"M8[{dtype.unit}]")).tz_localize("UTC")
        return in_utc.tz_convert(dtype.tz).array
    return pd.Index(numbers.view(name)).array


def _parts_of_cells(array: Any) -> Sequence[Any]:
    kind, cells = encode(pd.Series(array))
    return [json.dumps(kind), _objects(cells)]


def _made_frame(index: pd.Index, columns: pd.Index, arrays: list[Any], attrs: dict[Any, Any]) -> pd.DataFrame:
    series = {place: pd.Series(array, index, array.dtype, copy=False) for place, array in enumerate(arrays)}
    frame = pd.DataFrame(series, index=index, copy=False)
    frame.columns = columns
    frame.attrs.update(attrs)
    return frame


def _parts_of_dataset(dataset: xr.Dataset) -> Sequence[Any]:
    owners = [dataset.xindexes[name] for name in dataset.coords if name in dataset.xindexes]
    indexed = list({id(index): index for index in owners}.values())
    variables = [
        (name, name in dataset.coords, *_parts_of_variable(each, name in dataset.xindexes))
        for name, each in (*dataset.data_vars.variables.items(), *dataset.coords.variables.items())
    ]
    return [variables, indexed, dataset.attrs]


def _parts_of_variable(variable: xr.Variable, indexed: bool) -> Sequence[Any]:
    data = None if indexed else variable.data
    if not isinstance(data, np.ndarray | ExtensionArray | None):
        data = np.asarray(variable)
    return [variable.dims, data, variable.attrs]


def _made_dataset(variables: list[Any], indexes: list[Any], attrs: dict[Any, Any]) -> xr.Dataset:
    of_indexes: dict[Any, Any] = {}
    owners: dict[Any, Any] = {}
    for index in indexes:
        made = index.create_variables()
        of_indexes |= made
        owners |= dict.fromkeys(made, index)
    found: dict[bool, dict[Any, xr.Variable]] = {False: {}, True: {}}
    for name, is_coordinate, dims, data, own in variables:
        variable = of_indexes[name] if name in owners else xr.Variable(dims, data)
        variable.attrs = own
        found[is_coordinate][name] = variable
    return xr.Dataset(found[False], coords=xr.Coordinates(found[True], indexes=owners), attrs=attrs)


def _of_ours(of: Any) -> _Kind:
    """Return the kind of a dataclass. It is made of its fields, without computing anything again.

    Files that were written before the class had its last fields have none of them: they have their defaults.
    """

    def made(*parts: Any) -> Any:
        new: Any = object.__new__(of)
        added = [field.default for field in fields(of)[len(parts) :]]
        if NO_DEFAULT in added:
            raise TypeError("a part is missing")
        for field, part in zip(fields(of), [*parts, *added], strict=True):
            object.__setattr__(new, field.name, part)
        return new

    names = [field.name for field in fields(of)]
    return _kind(of, lambda value: [getattr(value, name) for name in names], made)


_UNNAMED: Final = "\0"
"""The name of an array among the variables of its dataset."""

_KINDS: Final[Sequence[_Kind]] = [
    _Kind(
        "texts",
        _is_text,
        _parts_of_texts,
        lambda letters, lengths, codes, shape, missing: _made_of_text(
            letters, lengths, codes, missing
        ).reshape(shape),
    ),
    _Kind(
        "objects",
        lambda value: isinstance(value, np.ndarray) and value.dtype == np.dtype(object),
        _parts_of_objects,
        lambda shape, codes, *distinct: _objects(distinct)[codes].reshape(shape),
    ),
    _Kind(
        "missing",
        lambda value: kind_of_missing(value) is not None,
        lambda value: [kind_of_missing(value)],
        MISSING.__getitem__,
    ),
    _kind(float, lambda value: [repr(value)], float),  # infinite
    _kind(list, list, lambda *parts: list(parts)),
    _kind(tuple, list, lambda *parts: parts),
    _kind(
        dict,
        lambda value: [part for pair in value.items() for part in pair],
        lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    ),
    _kinds(np.generic, lambda value: [np.asarray(value)], lambda array: array[()]),
    _kinds(
        pd.RangeIndex,
        lambda index: [index.start, index.stop, index.step, index.name],
        lambda start, stop, step, name: pd.RangeIndex(start, stop, step, name=name),
    ),
    _kinds(
        pd.MultiIndex,
        lambda index: [list(index.levels), list(map(np.asarray, index.codes)), list(index.names)],
        lambda levels, codes, names: pd.MultiIndex(levels, codes, names=names),
    ),
    _kinds(pd.Index, _parts_of_index, _made_index),
    _kinds(
        pd.Categorical,
        lambda value: [value.codes, value.categories, bool(value.ordered)],
        lambda codes, categories, ordered: pd.Categorical.from_codes(codes, categories, ordered=ordered),
    ),
    _Kind(
        "masked",
        lambda value: isinstance(
            value, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray
        ),
        _parts_of_masked,
        _made_masked,
    ),
    _Kind(
        "string",
        lambda value: isinstance(getattr(value, "dtype", None), pd.StringDtype),
        lambda value: [*_parts_of_text(value), name_of_text(value.dtype)],
        lambda letters, lengths, codes, name: pd.array(
            _made_of_text(letters, lengths, codes), dtype=text_dtype(name)
        ),
    ),
    _Kind(
        "times",
        lambda value: isinstance(
            value, pd.arrays.DatetimeArray | pd.arrays.TimedeltaArray | pd.arrays.PeriodArray
        ),
        _parts_of_times,
        _made_times,
    ),
    _kinds(
        pd.arrays.IntervalArray,
        lambda value: [value.left, value.right, value.closed],
        lambda left, right, closed: pd.arrays.IntervalArray.from_arrays(left, right, closed),
    ),
    _kinds(
        ExtensionArray, _parts_of_cells, lambda kind, cells: decode(json.loads(kind), cells.tolist()).array
    ),
    _kind(
        pd.DataFrame,
        lambda frame: [
            frame.index,
            frame.columns,
            [_array(frame.iloc[:, place]) for place in range(frame.shape[1])],
            frame.attrs,
        ],
        _made_frame,
    ),
    _kinds(np.dtype, lambda dtype: [dtype.str], np.dtype),
    _kinds(datetime.tzinfo, _parts_of_zone, _made_zone),
    _kind(
        PandasIndex,
        lambda value: [
            value.index,
            value.dim,
            value.coord_dtype if isinstance(value.coord_dtype, np.dtype) else None,
        ],
        lambda index, dim, dtype: PandasIndex(index, dim, coord_dtype=dtype),
    ),
    _kind(
        PandasMultiIndex,
        lambda value: [value.index, value.dim, value.level_coords_dtype],
        lambda index, dim, dtypes: PandasMultiIndex(index, dim, level_coords_dtype=dtypes),
    ),
    _kind(xr.Dataset, _parts_of_dataset, _made_dataset),
    _kind(
        xr.DataArray,
        lambda array: [array.to_dataset(name=_UNNAMED), array.name],
        lambda dataset, name: dataset[_UNNAMED].rename(name),
    ),
    _kind(
        xr.DataTree,
        lambda tree: [tree.name, {each.path: each.to_dataset(inherit=False) for each in tree.subtree}],
        lambda name, datasets: xr.DataTree.from_dict(datasets, name=name),
    ),
    *map(
        _of_ours, (Distribution, Bins, TreeStrategy, FactorizationStrategy, WeightedSums, Laplace, Gaussian)
    ),
]
"""Everything that a release may consist of, except numbers and text; of several kinds, the first one."""

_BY_NAME: Final = {kind.name: kind for kind in _KINDS}
