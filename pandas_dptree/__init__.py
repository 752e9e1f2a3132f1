"""Differentially private hierarchical tables for pandas and xarray.

Importing this package registers the accessor ``.dp``. All else is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pandas_dptree import accessors as _accessors  # noqa: F401  # registers .dp
from pandas_dptree._version import __version__ as __version__

if TYPE_CHECKING:
    from pandas_dptree.api import *  # noqa: F403

else:  # type checkers know which names exist

    def __getattr__(name: str) -> Any:
        """Import the public names, or raise an error that gives the new name of an old one."""
        api = import_module("pandas_dptree.api")
        if name != "__all__" and name not in api.__all__:
            raise import_module("pandas_dptree.old_names").no_attribute(
                "dpt", name, f"module 'pandas_dptree' has no attribute {name!r}"
            )
        return getattr(api, name)

    def __dir__() -> list[str]:
        """List only the public names, for completion."""
        return import_module("pandas_dptree.api").__all__
