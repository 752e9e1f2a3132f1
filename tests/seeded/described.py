"""Results as plain JSON, and how two of them differ.

Whole numbers and texts are kept as they are, floats to 13 digits, and within texts to 10. They are compared
exactly, and to a relative 1e-10. To a provenance (``attrs["dp"]``) keys may be added later; none may go or
change. Versions and digests of plans are left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

RELATIVE = 1e-10
_OF_ITS_LIST = 1e-14
"""What remains of numbers that cancel out, beside the largest one of their list."""

_LEFT_OUT = ("version", "digest")
"""What stands under these keys is not described."""

_DIGEST = re.compile("Digest: [0-9a-f]{64}")
"""A line of a text that is not described either."""

_MAY_GROW = ("provenance", "names")
"""Under these keys, more may come to stand later."""

_LABELS = (date, timedelta, np.datetime64, np.timedelta64, pd.Interval, pd.Period, Fraction, Decimal)
_LONG = re.compile(r"-?\d+\.\d{10,}(?:e[-+]?\d+)?")
_VERSION = re.compile(r"(?<=pandas_dptree )\d+\.\d+\S*?(?=[.,]?\s|<|$)")
_MOST_SHOWN = 3


def described(value: Any) -> Any:
    """Describe what a case returns in plain JSON."""
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.13g}")
    if isinstance(value, str):
        text = _LONG.sub(lambda found: f"{float(found[0]):.10g}", _VERSION.sub("VERSION", value))
        return {"lines": text.split("\n")} if "\n" in text else text
    if isinstance(value, list | tuple):
        return [described(each) for each in value]
    if isinstance(value, pd.DataFrame):
        columns = [{"name": described(name), **_column(each)} for name, each in value.items()]
        return {"index": _index(value.index), "columns": columns, **_attrs(value.attrs)}
    if isinstance(value, pd.Series):
        return {"index": _index(value.index), "name": described(value.name), **_column(value)}
    if isinstance(value, pd.Index):
        return _index(value)
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": _values(value.ravel())}
    if isinstance(value, xr.DataTree):
        groups = {name: described(group.to_dataset(inherit=False)) for name, group in value.children.items()}
        return {"order": list(groups), "groups": groups, **_attrs(value.attrs)}
    if isinstance(value, xr.Dataset):
        return {
            "sizes": described(dict(value.sizes)),
            "coordinates": [
                {"name": described(name), **_variable(each)} for name, each in value.coords.items()
            ],
            "variables": [{"name": described(name), **_variable(each)} for name, each in value.items()],
            "indexed": sorted(map(str, value.xindexes)),
            **_attrs(value.attrs),
        }
    if isinstance(value, Mapping):
        return {str(key): described(each) for key, each in value.items() if key not in _LEFT_OUT}
    if isinstance(value, _LABELS):
        return f"{type(value).__name__} {value}"
    raise TypeError(f"nothing is known of how to describe a {type(value).__name__}")


def _attrs(attrs: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Describe the provenance of a release, which is text in xarray, and what else there is."""
    provenance = attrs.get("dp")
    provenance = json.loads(provenance) if isinstance(provenance, str) else provenance
    others = {key: each for key, each in attrs.items() if key not in ("dp", "dp_plan")}
    facts = {} if provenance is None else {"provenance": described(provenance)}
    return facts | ({"attrs": described(others)} if others else {})


def _index(index: pd.Index) -> dict[str, Any]:
    kind = {"type": type(index).__name__, "names": described(list(index.names))}
    if isinstance(index, pd.RangeIndex):
        return {**kind, "values": f"{index.start}, {index.stop}, {index.step}"}
    if isinstance(index, pd.MultiIndex):
        return {**kind, "levels": [_column(index.get_level_values(level)) for level in range(index.nlevels)]}
    return {**kind, **_column(index)}


def _column(column: pd.Series | pd.Index) -> dict[str, Any]:
    facts: dict[str, Any] = {"dtype": str(column.dtype)}
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.dtype.categories
        facts |= {"ordered": column.dtype.ordered, "categories": _column(categories)}
        facts["codes"] = pd.Series(column).cat.codes.tolist()
        return facts
    return {**facts, "values": _values(column)}


def _variable(variable: xr.DataArray) -> dict[str, Any]:
    facts = {"dims": described(variable.dims), **described(variable.to_numpy())}
    return facts | ({"attrs": described(variable.attrs)} if variable.attrs else {})


def _values(values: Any) -> list[Any]:
    """List entries; missing ones are nan among floats, and otherwise null."""
    if getattr(values.dtype, "kind", "O") == "f" and isinstance(values.dtype, np.dtype):
        return [described(float(each)) for each in values]
    return [None if _is_missing(each) else described(each) for each in values]


def _is_missing(value: Any) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def differences(stored: Any, found: Any, path: str = "") -> list[str]:
    """Tell where a description differs from the stored one, a line for each place."""
    if isinstance(stored, dict) and isinstance(found, dict):
        facts = []
        for key in [*stored, *(key for key in found if key not in stored)]:
            here = f"{path}.{key}" if path else key
            if key not in found:
                facts.append(f"{here} is gone, it was {_short(stored[key])}")
            elif key not in stored:
                facts += [] if _may_grow(path) else [f"{here} is new: {_short(found[key])}"]
            else:
                facts += differences(stored[key], found[key], here)
        return facts
    if isinstance(stored, list) and isinstance(found, list):
        return _differences_of_lists(stored, found, path)
    return [] if _equal(stored, found) else [f"{path} is {_short(found)}, it was {_short(stored)}"]


def _may_grow(path: str) -> bool:
    """Whether keys may be added: to a provenance, for example, and to what it tells of each quantity."""
    return path.endswith(_MAY_GROW) or "provenance.quantities." in path


def _differences_of_lists(stored: list[Any], found: list[Any], path: str) -> list[str]:
    facts = []
    if len(stored) != len(found):
        facts.append(f"{path} has {len(found)} entries, it had {len(stored)}")
    plain = not any(isinstance(each, dict | list) for each in (*stored, *found))
    if not plain:
        for place, (old, new) in enumerate(zip(stored, found, strict=False)):
            name = old.get("name", place) if isinstance(old, dict) else place
            facts += differences(old, new, f"{path}[{name}]")
        return facts
    sizes = [abs(each) for each in stored if isinstance(each, float) and math.isfinite(each)]
    floor = _OF_ITS_LIST * max(sizes, default=0.0)
    unlike = [
        f"{path}[{place}] is {_short(new)}, it was {_short(old)}"
        for place, (old, new) in enumerate(zip(stored, found, strict=False))
        if not _equal(old, new, floor)
    ]
    more = len(unlike) - _MOST_SHOWN
    return [*facts, *unlike[:_MOST_SHOWN], *([f"{path}: {more} more of {len(stored)}"] if more > 0 else [])]


def _equal(stored: Any, found: Any, floor: float = 0.0) -> bool:
    if type(stored) is not type(found):
        return False
    if isinstance(stored, float):
        both_nan = math.isnan(stored) and math.isnan(found)
        return both_nan or math.isclose(stored, found, rel_tol=RELATIVE, abs_tol=floor)
    if isinstance(stored, str) and _DIGEST.fullmatch(stored) and _DIGEST.fullmatch(found):
        return True  # it has the last digit of each number of the plan in it
    return bool(stored == found)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}..."
