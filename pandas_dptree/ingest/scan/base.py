"""What all sources of records have."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

from pandas_dptree.errors import MissingExtraError
from pandas_dptree.ingest.scan.batches import Batch

__all__ = ["Source", "class_name", "needed"]


class Source(ABC):
    """Records of one engine. Methods may raise any error of the engine, which may quote values."""

    read_once: ClassVar[bool] = False
    in_memory: ClassVar[bool] = False

    def __init__(self, frame: Any, argument: str) -> None:
        self.frame, self.argument = frame, argument

    @staticmethod
    @abstractmethod
    def holds(frame: Any) -> bool:
        """Whether an object is a frame of this engine. Nothing is imported for that."""

    @abstractmethod
    def names(self) -> list[Hashable]:
        """List the names of the columns, from the schema alone."""

    @abstractmethod
    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the pandas or narwhals types of columns by name, from the schema alone."""

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Read some columns, in batches of at most `rows` rows. No others are read, and nothing twice."""
        raise NotImplementedError  # by an engine that only workers read

    def n_rows(self) -> int | None:
        """Return the number of records if it is known without reading."""
        return None

    def cluster(self, columns: Sequence[Hashable]) -> Any | None:
        """Return a frame of these columns alone, if the engine can read it on other processes."""
        return None


def class_name(kind: type) -> str:
    """Name a class with its module. The name of a class that its module does not hold is empty."""
    held = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return f"{kind.__module__}.{kind.__qualname__}" if held is kind else ""


def needed(package: str, *, of: str) -> Any:
    """Import a package that an engine needs, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        name = package.partition(".")[0]
    raise MissingExtraError(f"reading {of}", package=name)
