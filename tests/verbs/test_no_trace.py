"""A private key that is not released leaves no trace in anything that leaves the package."""

import copy
import datetime
import io
import json
import pickle
import struct
import traceback
import warnings
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms import truncated
from pandas_dptree.mechanisms.private_levels import gaussian_thresholds
from tests.helpers_cases import each
from tests.helpers_random import rng
from tests.strategies import objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

TEXT, UNIT, OUTSIDE = "zzUNIQUEzz", "zzUNITzz", "zzOUTSIDEzz"
LONG = "zzUNIQUEzz" * 40
WHOLE, FLOAT = 918_273_645_546_372_819, 8_675_309.25
DAY = datetime.date(1987, 6, 5)
PLACES = pd.DataFrame({"s": ["north", "south"]})
MECHANISMS = ["gaussian", "truncated_laplace"]


def encoded(secret):
    """List the bytes that a secret may be stored as."""
    if isinstance(secret, str):
        return [secret.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-32-le")]
    if isinstance(secret, datetime.date):
        midnight = datetime.datetime(secret.year, secret.month, secret.day, tzinfo=datetime.UTC)
        seconds = int(midnight.timestamp())
        numbers = [seconds * 10**power for power in (0, 3, 6, 9)]
        pickled = pickle.dumps(secret)
        return [
            secret.isoformat().encode(),
            struct.pack(">HBB", secret.year, secret.month, secret.day),
            pickled[pickled.index(b"C\x04") :][:6],
            *(struct.pack("<q", number) for number in numbers),
            struct.pack("<i", seconds // 86_400),
        ]
    if isinstance(secret, float):
        return [repr(secret).encode(), struct.pack("<d", secret), struct.pack(">d", secret)]
    return [
        str(secret).encode(),
        struct.pack("<q", secret),
        struct.pack(">q", secret),
        hex(secret)[2:].encode(),
    ]


def holds(content, secret):
    return any(form in content for form in encoded(secret))


# Columns of all types with a secret key


def in_pandas(dtype=None, **options):
    return lambda values: pd.Series(objects(values), **options).astype(dtype or object)


def in_arrow(dtype):
    """A column of an Arrow type in pandas; a dictionary keeps keys that no row has."""
    return lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([pyarrow.array(values).cast(dtype)]))
    )


DICTIONARY = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
TEXTS = {
    "object": in_pandas(),
    "str": in_pandas("str"),
    "string[python]": in_pandas(pd.StringDtype("python")),
    "string[pyarrow]": in_pandas(pd.StringDtype("pyarrow")),
    "category": in_pandas("category"),
    "U": lambda values: pd.Series(np.array(values, dtype="U")),
    "arrow": in_arrow(pyarrow.string()),
    "arrow dictionary": in_arrow(DICTIONARY),
    "view": in_arrow(pyarrow.string_view()),
}
NUMBERS = {
    "int64": in_pandas("int64"),
    "Int64": in_pandas("Int64"),
    "object": in_pandas(),
    "category": in_pandas("category"),
    "arrow": in_arrow(pyarrow.int64()),
}
FLOATS = {"float64": in_pandas("float64"), "Float64": in_pandas("Float64"), "category": in_pandas("category")}
TIMES = {
    "object": in_pandas(),
    "ns": in_pandas("datetime64[ns]"),
    "s": in_pandas("datetime64[s]"),
    "zone": lambda values: pd.Series(pd.to_datetime(values)).dt.tz_localize("UTC"),
    "category": in_pandas("category"),
    "arrow": in_arrow(pyarrow.date32()),
}
KINDS = {
    "text": (TEXT, ["apple", "pear"], TEXTS),
    "long text": (
        LONG,
        ["apple", "pear"],
        {name: TEXTS[name] for name in ("object", "U", "category", "arrow")},
    ),
    "number": (WHOLE, [1, 2], NUMBERS),
    "float": (FLOAT, [1.0, 2.5], FLOATS),
    "day": (DAY, [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], TIMES),
}
COLUMNS = [(kind, name) for kind, (_, _, columns) in KINDS.items() for name in columns]


def polars_frame(frame, kind):
    if kind == "plain":
        return polars.from_pandas(frame)
    keys = [name for name in ("p", "q") if name in frame]
    categories = [*pd.unique(frame[keys].to_numpy().ravel()), TEXT + " unused"]
    dtype = polars.Categorical if kind == "Categorical" else polars.Enum(categories)
    return polars.from_pandas(frame).lazy().with_columns(polars.col(keys).cast(dtype))


LIBRARIES = {
    "polars": lambda frame: polars_frame(frame, "plain"),
    "polars Categorical": lambda frame: polars_frame(frame, "Categorical"),
    "polars Enum": lambda frame: polars_frame(frame, "Enum"),
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame),
    "pyarrow large_string": lambda frame: pyarrow.Table.from_pandas(frame).cast(
        pyarrow.schema([(name, pyarrow.large_string()) for name in frame])
    ),
    "pyarrow dictionary": lambda frame: pyarrow.Table.from_pandas(frame).cast(
        pyarrow.schema([(name, DICTIONARY) for name in frame])
    ),
}


def records(secret, keys, column, n_secret=1):
    """Make records with the secret among the keys of p and q, and others among places and units."""
    common, other = keys
    sizes = [300, 200, n_secret, 1]
    p = [common, other, secret, common]
    q = [common, common, secret, secret]
    rows = np.repeat(np.arange(4), sizes)
    frame = pd.DataFrame({"s": np.array(["north", "north", "north", "south"])[rows]})
    frame["p"], frame["q"] = (column([values[row] for row in rows]) for values in (p, q))
    frame["unit"] = [f"person {row}" for row in range(len(frame))]
    frame.loc[len(frame) - 1, "unit"] = UNIT
    frame.loc[0, "s"] = OUTSIDE
    return frame


@cache
def planned(mechanism, public, **options):
    return dpt.plan(
        dpt.Domain.from_frame(PLACES, by=["s"]) if public else None,
        private_keys=["p", "q"], epsilon=2.0, delta=1e-9, mechanism=mechanism, privacy_unit="unit",
        max_contributions=1, **options,
    )  # fmt: skip


def contents(plan, table, folder):
    """Give the bytes of everything that is made of a released table, by name."""
    levels = {f"level {name}": table.dp.level(name) for name in plan.level_names}
    frames = {"table": table, "slice": table.iloc[:2], "copy": copy.deepcopy(table),
              "column": table["p"], "rows": table[table["level"] == "p"], **levels}  # fmt: skip
    for name, frame in frames.items():
        yield f"pickle of {name}", pickle.dumps(frame)
    for name, level in levels.items():
        index = level.index
        lists = index.levels if isinstance(index, pd.MultiIndex) else [index]
        yield f"index of {name}", repr([list(each) for each in lists]).encode()
    indexed = table.set_index(["level", "p", "q"])
    yield "MultiIndex", pickle.dumps(indexed) + repr([list(each) for each in indexed.index.levels]).encode()
    yield "text", (repr(table) + table._repr_html_() + table.to_string()).encode()
    yield "page", table.dp.to_html().encode()
    yield "attrs", json.dumps(table.attrs).encode()
    categories = [table[name].cat.categories for name in table if table[name].dtype == "category"]
    yield "categories", repr([list(each) for each in categories]).encode()
    native = pyarrow.Table.from_pandas(table)
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, native.schema) as writer:
        writer.write_table(native)
    yield "Arrow", sink.getvalue()
    yield "memory of Arrow", memory(native)
    columns = [table[name].array for name in table]
    yield "memory", b"".join(map(memory, map(pyarrow.array, (c for c in columns if c.dtype != "category"))))
    bases = [
        array for array in (getattr(column, "_ndarray", None) for column in columns) if array is not None
    ]
    yield "memory of NumPy", b"".join(base_of(array).tobytes() for array in bases if array.dtype != object)
    table.to_parquet(folder / "plain.parquet", compression="none")
    yield "Parquet", (folder / "plain.parquet").read_bytes()
    for name in ("counts.parquet", "counts.csv"):
        dpt.to_file(table, folder / name)
        yield name, b"".join(path.read_bytes() for path in folder.glob("counts*"))
    yield "read again", pickle.dumps(pd.read_parquet(folder / "counts.parquet"))
    yield "domain", pickle.dumps(table.dp.domain())
    yield "plan", pickle.dumps(plan) + repr(plan).encode() + json.dumps(plan.to_dict()).encode()


def memory(array):
    """Read all memory that an Arrow array or table keeps alive."""
    columns = array.columns if isinstance(array, pyarrow.Table) else [array]
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    dictionaries = [chunk.dictionary for chunk in chunks if isinstance(chunk, pyarrow.DictionaryArray)]
    buffers = [buffer for chunk in [*chunks, *dictionaries] for buffer in chunk.buffers() if buffer]
    return b"".join(buffer.to_pybytes() for buffer in buffers)


def base_of(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def places_of(secrets, plan, frame, folder):
    """Release, and list where secrets are found, and where they were looked for."""
    table = plan.release(frame, rng=rng(1))
    searched = dict(contents(plan, table, folder))
    found = {name for name, content in searched.items() if any(holds(content, each) for each in secrets)}
    return table, found, set(searched)


@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_no_key_of_pandas_leaves_a_trace(kind, name, tmp_path):
    """With public keys above it and without, in turn."""
    leaves_no_trace("gaussian", COLUMNS.index((kind, name)) % 2 == 0, kind, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("kind", "name"), COLUMNS)
def test_no_key_of_any_pandas_column_leaves_a_trace(mechanism, public, kind, name, tmp_path):
    leaves_no_trace(mechanism, public, kind, name, tmp_path)


def leaves_no_trace(mechanism, public, kind, name, folder):
    secret, keys, columns = KINDS[kind]
    frame = records(secret, keys, columns[name])
    plan = planned(mechanism, public, keep=("measurements",) if public else ())
    table, found, _ = places_of([secret, UNIT, OUTSIDE], plan, frame, folder)
    assert found == set() and len(table["p"].dropna().unique()) == 2


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_key_of_another_library_leaves_a_trace(library, tmp_path):
    mechanism = MECHANISMS[list(LIBRARIES).index(library) % 2]
    frame = LIBRARIES[library](records(TEXT, ["apple", "pear"], TEXTS["object"]))
    table, found, _ = places_of([TEXT], planned(mechanism, True), frame, tmp_path)
    assert found == set() and sorted(table["p"].dropna().unique()) == ["apple", "pear"]


@pytest.mark.parametrize("beside", [False, True])
@each("kind", ["text", "number"])
def test_no_unit_that_is_counted_and_no_key_outside_leaves_a_trace(beside, kind, tmp_path):
    """Of counts of distinct units, alone and beside those of their rows."""
    secret, keys, columns = KINDS[kind]
    frame = records(secret, keys, next(iter(columns.values())))
    public = frame.loc[frame["p"].isin(keys) & frame["q"].isin(keys), ["p", "q"]].drop_duplicates()
    domain = dpt.Domain.from_frame(public, by=["p", "q"])
    options = {"epsilon": 2.0, "privacy_unit": "unit", "max_nodes": 1, "keep": ["measurements", "linear"]}
    if beside:
        asked = {"rows": "count", "people": "units", "each": "count_per_unit"}
        plan = dpt.plan_agg(domain, asked, **options, max_contributions=2)
    else:
        plan = dpt.plan_units(domain, **options)
    frame.loc[3, "unit"] = UNIT  # one that is counted
    table, found, _ = places_of([secret, UNIT, OUTSIDE], plan, frame, tmp_path)
    assert found == set() and len(table["p"].dropna().unique()) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_keys_that_are_released(kind, tmp_path):
    secret, keys, columns = KINDS[kind]
    frame = records(secret, keys, next(iter(columns.values())), n_secret=400)
    plan = planned("gaussian", False)
    _, found, searched = places_of([secret], plan, frame, tmp_path)
    unlikely = {
        "attrs",
        "categories",
        "plan",
        "index of level total",
        "pickle of level total",
        "memory of NumPy",
    }
    shown_first = {"pickle of slice"}  # two rows of the table
    compressed = {"counts.parquet"} if kind not in ("text", "long text") else set()
    missed = searched - found - unlikely - shown_first - compressed
    assert missed == set()


# Neighbours


def released(frame, mechanism, public, draw=0):
    """Release with noise that is the same for all nodes."""

    def same(*arguments):
        return np.full(arguments[-2], draw, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian_thresholds, "discrete_gaussian", same)
        patch.setattr(truncated, "truncated_discrete_laplace", same)
        return planned(mechanism, public).release(frame, rng=rng(0))


def described(table):
    """Give the bytes of a table, and its attributes without the generator."""
    return pickle.dumps(table), table.attrs, table.dtypes.tolist(), list(table)


VARIANTS = {
    "text": ("zz", ["another", "x" * 500, "", None, 5, 1.5, b"zz", ("zz",), DAY, object(), [1], "ap", "zzz"]),
    "number": (77, [78, -1, 2**40, None, "text", 1.5, 10**30, True, DAY, np.nan, Decimal("0.1"), [1]]),
    "day": (DAY, [datetime.date(1, 1, 1), None, "text", datetime.datetime(2024, 1, 1, 12), pd.NaT, 5]),
    "truth": (True, [None, "text", 1]),
}


PAIRS = [
    ("gaussian", True, 300),
    ("gaussian", False, 2),
    ("truncated_laplace", True, 2),
    ("truncated_laplace", False, 300),
]
"""Any two of mechanism, whether some keys are public, and number of rows with each common key."""


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize(("mechanism", "public", "n_common"), PAIRS)
def test_a_row_that_is_not_released_does_not_show(mechanism, public, kind, n_common):
    """Whatever its key is, and whatever pandas makes of the whole column; with released keys and without."""
    others = VARIANTS[kind][1]
    rows = [(place, VARIANTS[kind][0]) for place in (0, n_common)]
    rows += [((0, n_common)[turn % 2], other) for turn, other in enumerate(others)]
    look_all_the_same(mechanism, public, kind, n_common, rows)


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("n_common", [300, 2])
def test_no_row_that_is_not_released_shows(mechanism, public, kind, n_common):
    secret, others = VARIANTS[kind]
    rows = [(place, other) for place in (0, n_common) for other in (secret, *others)]
    look_all_the_same(mechanism, public, kind, n_common, rows)


def look_all_the_same(mechanism, public, kind, n_common, rows):
    """Release with each row, given by its place and key, and check that no table differs from the first."""
    common = {"truth": [False, False]}.get(kind) or KINDS[kind][1]
    tables, first = set(), None
    for place, other in rows:
        p = [common[0]] * n_common + [common[1]] * n_common
        p.insert(place, other)
        frame = pd.DataFrame({"p": p, "q": p, "s": "north", "unit": range(len(p))})
        variants = [frame]
        if frame["p"].dtype != object:
            variants.append(frame.astype({"p": object, "q": object}))
        if all(type(value) is type(common[0]) for value in p):
            variants += [frame.astype("category"), frame.iloc[::-1]]
        for variant in variants:
            table = released(variant, mechanism, public)
            first = described(table) if first is None else first
            assert described(table) == first
            tables.add(tuple(map(str, table.dtypes)))
    assert len(tables) == 1


# What is said on the way


class Speaks:
    """A key that puts itself into everything it raises."""

    def __hash__(self):
        raise ValueError(TEXT)

    def __eq__(self, other):
        raise ValueError(TEXT)

    def __repr__(self):
        raise ValueError(TEXT)


class SpokenText(str):
    __slots__ = ()

    def __eq__(self, other):
        raise ValueError(TEXT)

    def __hash__(self):
        raise ValueError(TEXT)


ODD = [
    TEXT,
    Speaks(),
    SpokenText(TEXT),
    [TEXT],
    {TEXT: TEXT},
    (TEXT, [1]),
    Decimal("1e999999"),
    10**5000,
    "\ud800" + TEXT,
]


@pytest.mark.parametrize(
    ("mechanism", "column"),
    [("gaussian", "p"), ("truncated_laplace", "q"), ("gaussian", "s"), ("truncated_laplace", "unit")],
)
def test_nothing_is_said_of_odd_keys(mechanism, column, capsys):
    """Neither errors nor warnings nor the bar: with one odd value, and with one of each kind."""
    for odd in (*([value] for value in ODD), ODD):
        frame = records("rare", ["apple", "pear"], TEXTS["object"]).astype(object)
        frame[column] = objects([*frame[column][:20], *odd, *frame[column][20 + len(odd) :]])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = planned(mechanism, True).release(frame, progress=True)
            nearly_empty = planned(mechanism, True).release(frame.iloc[20:30], progress=True)
        shown = capsys.readouterr()
        texts = [*(str(each.message) for each in said), shown.out, shown.err, repr(table), repr(nearly_empty)]
        assert not any("zz" in text for text in texts)
        assert "reading" in shown.err


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_errors_do_not_hold_the_keys(mechanism, monkeypatch):
    frame = records(TEXT, ["apple", "pear"], TEXTS["object"])

    def fail(*arguments, **options):
        raise RuntimeError(f"cannot sort {list(frame['p'])}")

    for name in ("factorize", "isna"):
        with monkeypatch.context() as patch:
            patch.setattr(pd, name, fail)
            try:
                planned(mechanism, False).release(frame)
            except dpt.ArgumentError as error:
                said = "".join(traceback.format_exception(error, chain=True))
                assert TEXT not in said and error.__cause__ is None and error.__context__ is None
