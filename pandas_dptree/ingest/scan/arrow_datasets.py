"""Batches of datasets of pyarrow, such as many files. Secret: nothing here may leave."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from pandas_dptree.errors import quote
from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.scan.arrow_streams import ArrowSource
from pandas_dptree.ingest.scan.base import class_name, needed
from pandas_dptree.ingest.scan.batches import Batch, arrow_batches

__all__ = ["ArrowDataset", "check_parts"]

DATASET_ROWS = 2**17
"""How many rows of a dataset Arrow decodes at a time. It does so for a few batches ahead."""

_KINDS = (
    "pyarrow._dataset_parquet.ParquetFileFormat",
    "pyarrow._dataset_orc.OrcFileFormat",
    "pyarrow._dataset.FeatherFileFormat",
    "pyarrow._dataset.IpcFileFormat",
    "pyarrow._dataset.Fragment",
)
"""Formats of files that state their types, and the class of parts in memory. In text files, Arrow guesses."""

_MOST_FILES = 8
"""How many schemas of files are read at a time."""


class ArrowDataset(ArrowSource):
    """A pyarrow.dataset.Dataset, such as files of Parquet."""

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one."""
        return is_instance(frame, "pyarrow._dataset.Dataset")

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Scan the columns, with a small part of the files in memory."""
        field = needed("pyarrow.dataset", of="datasets").field
        check_parts(self.schema, _parts(self.frame), columns, self.argument)
        scanner = self.frame.scanner(
            columns={str(name): field(str(name)) for name in columns},
            batch_size=min(rows, DATASET_ROWS),
            batch_readahead=2,
            fragment_readahead=1,
            fragment_scan_options=_options(self.frame),
        )
        yield from arrow_batches(scanner.to_batches(), rows)


def check_parts(schema: Any, parts: Sequence[Any], columns: Sequence[Hashable], argument: str) -> None:
    """Refuse parts of a dataset whose types are not stated, or do not fit those of its schema.

    **Privacy.** Arrow converts the values of each file to the types of the dataset, mostly those of the first
    file. If that could fail, one record would decide whether anything is released. Of text files, it guesses
    the types from some values.
    """
    kinds = [type(getattr(part, "format", part)) for part in parts]
    if unknown := [kind.__name__ for kind in kinds if class_name(kind) not in _KINDS]:
        raise ReadingError(
            argument,
            f"is a dataset of {quote(unknown[0])}, in which types may be guessed from values.",
            hint="convert the files to Parquet, with types that you state; or release from text files by the "
            "command dptree, which reads each line separately.",
        )
    with ThreadPoolExecutor(_MOST_FILES) as pool:
        schemas = list(pool.map(_schema_of_part, parts))
    for name in columns:
        wanted = schema.field(str(name)).type
        types = dict.fromkeys(each.type for own in schemas for each in own if each.name == name)
        unlike = [kind for kind in types if not _fits(kind, wanted)]
        if unlike:
            listed = " or ".join(map(str, unlike[:8]))
            raise ReadingError(
                argument,
                f"has files in which {quote(name)} is of the type {listed}, not {wanted} as in the dataset.",
                hint="write the column with one type in all files, or state one in which no value of any "
                "file changes: pyarrow.dataset.dataset(files, schema=...).",
            )


def _options(dataset: Any) -> Any:
    """Return how files are read, unless the caller has stated it: Arrow would keep all bytes of a file."""
    form: Any = getattr(dataset, "format", None)
    if not is_instance(form, "pyarrow._dataset_parquet.ParquetFileFormat"):
        return None
    usual = needed("pyarrow.dataset", of="datasets").ParquetFragmentScanOptions
    stated = form.default_fragment_scan_options != usual()
    return None if stated else usual(pre_buffer=False)


def _parts(dataset: Any) -> list[Any]:
    """List the parts of a dataset, each with a schema of its own; those of a filtered one are unknown."""
    try:
        return list(dataset.get_fragments())
    except ValueError:
        if children := getattr(dataset, "children", None):
            return [part for child in children for part in _parts(child)]
        if hasattr(dataset, "files"):
            return [_File(dataset.format, path, dataset.filesystem) for path in dataset.files]
        in_memory = class_name(type(dataset)) == "pyarrow._dataset.InMemoryDataset"  # of one schema
        return [] if in_memory else [dataset]


class _File(NamedTuple):
    """A file of a filtered dataset."""

    format: Any
    path: str
    filesystem: Any

    @property
    def physical_schema(self) -> Any:
        """The schema of the file itself, as a part of a dataset has it."""
        return self.format.inspect(self.path, self.filesystem)


def _schema_of_part(part: Any) -> Any:
    return part.physical_schema


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether Arrow converts every value of one type to the same value of another type."""
    known = needed("pyarrow.types", of="datasets")
    if kind == wanted or known.is_null(kind):
        return True
    if known.is_dictionary(kind):
        return _fits(kind.value_type, wanted)
    for texts in ((known.is_string, known.is_large_string), (known.is_binary, known.is_large_binary)):
        if any(is_text(kind) for is_text in texts):
            return any(is_text(wanted) for is_text in texts)
    if known.is_integer(kind) and known.is_integer(wanted):
        from_signed, to_signed = known.is_signed_integer(kind), known.is_signed_integer(wanted)
        wide_enough = wanted.bit_width >= kind.bit_width + (to_signed and not from_signed)
        return bool(wide_enough and (to_signed or not from_signed))
    if known.is_floating(kind) and known.is_floating(wanted):
        return bool(wanted.bit_width >= kind.bit_width)
    if known.is_decimal(kind) and known.is_decimal(wanted):
        more_digits = wanted.scale - kind.scale
        return bool(0 <= more_digits <= wanted.precision - kind.precision)
    return False
