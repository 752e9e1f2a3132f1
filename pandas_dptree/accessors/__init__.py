"""The ``.dp`` accessors of pandas and xarray, which are imported on first use."""

from importlib import import_module
from typing import Any

import pandas as pd
import xarray as xr


class _Imported:
    """Stands for a class of accessors until it is used."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def __call__(self, data: Any) -> Any:
        """Return the accessor of an object."""
        return self._kind()(data)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the class: ``pandas.DataFrame.dp.tree_counts`` has a signature."""
        return getattr(self._kind(), name)

    def __dir__(self) -> list[str]:
        """List the attributes of the class."""
        return dir(self._kind())

    def _kind(self) -> Any:
        module, name = self._place
        return getattr(import_module(f"{__name__}.{module}"), name)


_FRAME, _SERIES = (_Imported("frames", name) for name in ("DataFrameAccessor", "SeriesAccessor"))
_ARRAY, _DATASET, _TREE = (
    _Imported("arrays", name) for name in ("DataArrayAccessor", "DatasetAccessor", "DataTreeAccessor")
)

pd.api.extensions.register_dataframe_accessor("dp")(_FRAME)  # type: ignore[type-var]  # not a class
pd.api.extensions.register_series_accessor("dp")(_SERIES)  # type: ignore[type-var]
xr.register_dataarray_accessor("dp")(_ARRAY)  # type: ignore[no-untyped-call]
xr.register_dataset_accessor("dp")(_DATASET)  # type: ignore[no-untyped-call]
xr.register_datatree_accessor("dp")(_TREE)  # type: ignore[no-untyped-call]
