"""Files of records: one line is one record, and no record decides how another is read."""

import contextlib
import csv
import gzip
import io
import sys
import tempfile
from itertools import chain
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.files import csv_files
from pandas_dptree.ingest.files.public_tables import read_table
from pandas_dptree.ingest.files.records import open_records
from tests.helpers_cases import each
from tests.helpers_reading import encoded_units, leaves_read

HEAD = b"k,l,other"
KEYS = pd.DataFrame({"k": ["a", "a", "b"], "l": ["x", "y", "x"]})
DOMAIN = dpt.Domain.from_frame(KEYS, by=["k", "l"])

TOKENS = [
    b'"', b'""', b",", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80",
    b"\xf0\x9f", b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\x0b", b"\x0c", b"\x1a", "\x85".encode(),
    "\u2028".encode(), "é🙂".encode(), b"a", b"x", b"a,x", b"a,x,1", b'"a","x"', b"k,l,other", b" ", b"\t",
    b"#", b"'", b"\\", b"NA", b"0" * 200_000,
]  # fmt: skip

lines = st.one_of(
    st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")),
    st.lists(st.sampled_from(TOKENS), max_size=8).map(b"".join),
)
"""Lines of any bytes."""

fields = st.one_of(
    st.sampled_from(["a", "b", "x", "y", "", "St. John, upper", 'the "old" town', '"', "NA", "00501", " a "]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=5),
)


def written(row):
    """Write a line as programs do: quotes where they are needed, or everywhere."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if len(row[0]) % 2 else csv.QUOTE_MINIMAL
    csv.writer(text, quoting=quoting, lineterminator="").writerow(row)
    return text.getvalue().encode()


rows = st.lists(st.tuples(fields, fields, fields), max_size=12)


def from_file(path, columns, argument):
    """Read a file as a frame of pandas: records may be a stream."""
    if argument != "records":
        return read_table(path, columns, argument)
    found = open_records([str(path)], columns)
    if isinstance(found, pd.DataFrame):
        return found
    table, text = pytest.importorskip("pyarrow").table(found), pd.Series([""]).dtype
    lists = {name: [np.nan if each is None else each for each in table[name].to_pylist()] for name in columns}
    return pd.DataFrame({name: pd.Series(texts, dtype=text) for name, texts in lists.items()})


def records(content, columns=("k", "l"), name="rows.csv", argument="records"):
    """Read a file of these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        frame = from_file(path, list(columns), argument)
    assert list(frame) == list(columns)
    return frame


def listed(frame):
    return list(map(tuple, frame.astype(object).where(frame.notna(), None).to_numpy().tolist()))


def leaf_counts(frame):
    return leaf_totals(frame, DOMAIN)[0].tolist()


def counted(content, *more, name="rows.csv"):
    """Count by the shell command with hardly any noise: the leaves' counts, or its error."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        KEYS.to_csv(Path(folder) / "keys.csv", index=False)
        files = [str(Path(folder) / name), "--domain", str(Path(folder) / "keys.csv")]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["counts", *files, "--by", "k", "--by", "l", "--epsilon", "9000", *more])
    if code:
        assert code == 2 and out.getvalue() == "" and "Hint: " in err.getvalue()
        assert "Traceback" not in err.getvalue()
        return err.getvalue()
    leaves = [line.split(",") for line in out.getvalue().splitlines() if line.startswith("l,")]
    assert [line[1:3] for line in leaves] == KEYS.to_numpy().tolist()
    return [int(line[3]) for line in leaves]


# One line is one record.


@given(st.lists(lines, max_size=6), lines, st.data())
def test_a_line_of_any_bytes_changes_no_other(others, line, data):
    """All lines may be anything; the one that is added has the same record wherever it stands."""
    place = data.draw(st.integers(0, len(others)))
    ending, end = data.draw(st.sampled_from([b"", b"\r"])), data.draw(st.sampled_from([b"", b"\n"]))
    name = data.draw(st.sampled_from(["rows.csv", "rows.csv.gz"]))

    def of(*body):
        return records(b"\n".join(each + ending for each in [HEAD, *body]) + end, name=name)

    without, alone = of(*others), listed(of(line))
    each = [listed(of(other)) for other in others]
    assert listed(without) == [*chain(*each)] and len(alone) <= 1
    together = of(*others[:place], line, *others[place:])
    assert listed(together) == [*chain(*each[:place], alone, *each[place:])]
    changes = np.subtract(leaf_counts(together), leaf_counts(without))
    assert set(changes) <= {0, 1} and changes.sum() <= 1


@given(rows, lines, st.data())
def test_well_formed_lines_stay_whatever_is_added(table, line, data):
    body, place = list(map(written, table)), data.draw(st.integers(0, len(table)))
    present = [tuple(field or None for field in row[:2]) for row in table]
    assert listed(records(b"\n".join([HEAD, *body]))) == present
    found = listed(records(b"\n".join([HEAD, *body[:place], line, *body[place:]])))
    assert len(found) - len(table) in (0, 1)
    assert found[:place] + found[place + len(found) - len(table) :] == present


PLAIN = [b"a,x,1", b"a,y,2", b"b,x,3", b"a,x,4"]
TRUTH = [2, 1, 1]

BREACHES = {
    "carriage returns": b"b,x,\ra,x,1\ra,x,2\ra,y,3",
    "carriage returns alone": b"\ra,x,1\rb,x,1",
    "an open quote": b'a,x,"',
    "an open quote in a key": b'"a,x,1',
    "quotes that are no pair": b'a,x,""" and more',
}
"""Lines that changed how other lines were read, or failed the file, while pandas read it as a whole."""

MALFORMED = [
    b"a,x,1,extra", b"a,x,1,2,3,4", b"a", b"", b",", b",,,,,", b"b", b'a"b,x,1', b'"a"b,x,1', b"\xff\xfe,x,1",
    b"a,\xe9,1", b"a\x00,x,1", b'"a\n",x,1', b'"a\r\nb","x",1', b"\xef\xbb\xbfa,x,1", b"k,l,other", b" a,x,1",
    b"#a,x,1", b"NA,x,1", b"\\,x,1", b"\0", b"\r", b" \t", b'"a\0","x"', b"a,x," + b"0" * 10**6,
    b'a,x,"one" "two', b'a,x,"' + b"0" * 10**6 + b'"', b"," * 10**5, b'"",' * 10**5,
]  # fmt: skip


@pytest.mark.parametrize(
    "malformed", [[*BREACHES.values()], *(MALFORMED[turn::4] for turn in range(4))], ids=len
)
def test_a_malformed_record_counts_for_itself_at_most(malformed):
    assert counted(b"\n".join([HEAD, *PLAIN])) == TRUTH

    def counts_once(line):
        for place in (0, 2, len(PLAIN)):
            for newline in (b"\n", b"\r\n"):
                content = newline.join([HEAD, *PLAIN[:place], line, *PLAIN[place:]]) + newline
                found = leaf_counts(records(content))
                changes = [one - other for one, other in zip(found, TRUTH, strict=True)]
                assert set(changes) <= {0, 1} and sum(changes) <= 1
        assert counted(content) == found

    each("line", malformed)(counts_once)()


@each(
    ("line", "record"),
    [
        (b"a,x,1,2,3", ("a", "x")),  # too many fields
        (b"a", ("a", None)),  # too few
        (b",x,", (None, "x")),
        (b'"",x,', (None, "x")),
        (b"a\0b,x", ("a\0b", "x")),
        (b'"a\0b",x', ("a\0b", "x")),
        (b"a\rb,x", ("a\rb", "x")),
        (b'"a\rb",x', ("a\rb", "x")),
        (b"a,x\r", ("a", "x")),
        (b"a,x\r\r", ("a", "x\r")),
        (b"\xef\xbb\xbfa,x", ("\ufeffa", "x")),  # only the file begins with a mark of byte order
        (b"caf\xe9,x", ("\ncaf\xe9", "x")),
        ("\u00e9,".encode() + b"\xe9", ("\u00e9", "\n\xe9")),
        (b'"a,b","the ""old"" x"', ("a,b", 'the "old" x')),
        (b'a"b,x', ('a"b', "x")),
        ("a\x85,\u2028x\x1c".encode(), ("a\x85", "\u2028x\x1c")),
        (b"NA,null", ("NA", "null")),
        (b'"a" ,x', None),
        (b'"a,x', None),
        (b'a,x,"', None),
        (b'a"b,"x"\ry', None),
        (b'a,x,"' + b"0" * 131_073 + b'"', None),  # longer than the csv module reads
        (b"", None),
        (b"\t ", None),
    ],
)
def test_how_a_line_is_read(line, record):
    assert listed(records(b"k,l\n" + line)) == ([] if record is None else [record])


def test_units_that_are_not_utf8_stay_two():
    """As in an export in Latin-1: otherwise a new unit could take the rows of another one with it."""
    of_one = "k,unit\n" + "a,M\u00f6ller\n" * 3
    of_both = of_one + "b,M\u00fcller\n" * 3
    domain = dpt.Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    units = []
    for text in (of_one, of_both):
        read_again = records(text.encode("latin-1"), ("k", "unit"))
        leaf, unit = leaves_read(read_again, domain), encoded_units(read_again["unit"])
        units.append([{unit[row] for row in np.flatnonzero(leaf == each)} for each in range(2)])
    assert [[len(names) for names in leaves] for leaves in units] == [[1, 0], [1, 1]]
    assert units[1][0].isdisjoint(units[1][1])


@each("argument", ["domain", "known"])
def test_a_public_line_has_no_more_fields_than_the_first(argument):
    with pytest.raises(ArgumentError, match="line 3: it has more fields than the 2 of the first line"):
        records(b"k,l\na,x\nb,y, z\n", argument=argument)
    assert len(records(b"k,l\na,x,\n", argument=argument)) == 1  # as some programs end each line


@each("mark", [";", "\t"])
def test_other_separators_are_recognized_by_the_first_line(mark):
    with pytest.raises(ArgumentError, match="has a single column") as caught:
        records(f"k{mark}l\na{mark}x\n".encode())
    assert "commas" in caught.value.hint


def test_a_text_with_a_line_break_is_two_lines():
    """So says the documentation: the first leaves a quote open, the second is a record of its own."""
    content = b'k,l,other\nb,x,"she said:\na,x,which is no record"\na,y,2\n'
    assert listed(records(content)) == [("a", "x"), ("a", "y")] and counted(content) == [1, 1, 0]


# What was read before is read as before.


@pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")  # pandas 2 has several
@given(rows, st.sampled_from(["\n", "\r\n"]), st.booleans())
@example([(",", '"', '","'), ("", "", ""), ('""', ",,", " ")], "\n", True)
def test_well_formed_files_are_read_as_by_pandas(table, newline, mark):
    text = newline.join(["k,l,other", *(written(row).decode() for row in table), ""])
    content = text.encode("utf-8-sig" if mark else "utf-8")
    by_pandas = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, na_values=[""])
    for columns in (["k", "l"], ["other", "k"], ["l"]):
        pd.testing.assert_frame_equal(records(content, columns), by_pandas[columns])
        pd.testing.assert_frame_equal(records(content, columns, argument="domain"), by_pandas[columns])


@pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")  # pandas 2 has several
def test_real_files_are_read_as_by_pandas(real_data):
    for name in ("zipcodes.csv", "birdstrikes.csv"):
        by_pandas = pd.read_csv(real_data / name, dtype=str, keep_default_na=False, na_values=[""])
        for argument in ("records", "domain"):
            found = from_file(real_data / name, list(by_pandas), argument)
            pd.testing.assert_frame_equal(found, by_pandas)
        pd.testing.assert_frame_equal(read_table(real_data / name, None, "known"), by_pandas)


def test_texts_outside_of_arrow(monkeypatch):
    """As where there is no pyarrow; more distinct texts than are remembered."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(csv_files, "_MAX_SHARED", 2**7)
    table = [(str(number // 2), "x") for number in range(2000)]
    content = b"k,l\n" + b"\n".join(f"{k},{x}".encode() for k, x in table)
    with pd.option_context("mode.string_storage", "python"):
        frame = records(content)
        pd.testing.assert_frame_equal(frame, pd.read_csv(io.BytesIO(content), dtype=str))
        assert records(b"k,l").dtypes.equals(frame.dtypes)
    assert listed(frame) == table


# Headers and public files.


@each("head", [b"\xef\xbb\xbfk,l,other", b'\xef\xbb\xbf"k","l","other"', b"k,l", b'other,"l",k'])
def test_headers(head):
    body = [b",".join(line.split(b",")[::-1]) for line in PLAIN] if head.startswith(b"other") else PLAIN
    assert counted(b"\n".join([head, *body])) == TRUTH
    assert counted(head + b"\n") == counted(head) == [0, 0, 0]
    packed = gzip.compress(b"\r\n".join([head, *body]))
    assert counted(packed, name="rows.csv.gz") == counted(packed, name="ROWS.CSV.GZ") == TRUTH


@each(
    ("content", "name", "said"),
    [
        (b"", "rows.csv", "its first line is blank"),
        (b"\n", "rows.csv", "its first line is blank"),
        (b"\nk,l\na,x\n", "rows.csv", "its first line is blank"),  # which line would be the header?
        (b"k,l,l\na,x,x\n", "rows.csv", "has several columns named: 'l'"),
        (b"k,other\na,x\n", "rows.csv", "lacks the columns: 'l'"),
        (b"k,L\na,x\n", "rows.csv", "did you mean 'L'?"),
        (b"k,l\ra,secret\ra,x\r", "rows.csv", "at line 1: it holds a carriage return"),
        (b'"k","l"\r"a","secret"\r', "rows.csv", "at line 1: it holds a carriage return"),
        (b'k,l,"secret\nthing"\na,x,1\n', "rows.csv", "at line 1: a quote is not closed"),
        ("k,l,größe\na,x,1\n".encode("latin-1"), "rows.csv", "at line 1: it is not UTF-8"),
        ("k,l\na,x\n".encode("utf-16"), "rows.csv", "at line 1: it is not UTF-8"),
        (b"PAR1\x15\x04\xf5", "rows.csv", "it is a Parquet file"),
        (gzip.compress(b"k,l\na,secret\n", mtime=0), "rows.csv", "it is a compressed file"),
        (gzip.compress(b"k,l\n" + b"a,x\n" * 999, mtime=0)[:-9], "rows.csv.gz", "cannot be read from"),
        (gzip.compress(b"k,l\n" + b"a,x\n" * 999, mtime=0)[:-9] + b"secret", "rows.csv.gz", "cannot be read"),
        (gzip.compress(b"k,l\na,x\n", mtime=0) + b"secret", "rows.csv.gz", "cannot be read from"),
        (b"k,l\na,secret\n", "rows.csv.gz", "cannot be read from"),
        (b"k,l\na,secret\n", "rows.parquet", "cannot be read from"),
    ],
)
def test_files_that_are_no_table(content, name, said):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    message = counted(content, name=name)
    assert isinstance(message, str) and message.startswith("dptree: `records` ") and said in message
    assert "secret" not in message


@each("argument", ["domain", "known"])
@each(
    ("line", "said"),
    [
        (b'a,"x', "cannot be read at line 3: a quote is not closed"),
        (b'"a"b,x', "cannot be read at line 3: a quote is not closed, or"),
        (b"a,x\rb,x", "cannot be read at line 3: it holds a carriage return"),
        (b"caf\xe9,x", "cannot be read at line 3: it is not UTF-8"),
    ],
)
def test_a_line_of_a_public_file_that_cannot_be_read_is_an_error(argument, line, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        records(b"k,l\na,x\n" + line + b"\nb,x\n", argument=argument)
    assert caught.value.argument == argument and caught.value.hint.endswith(".")
    assert len(records(b"k,l\na,x\n" + line + b"\nb,x\n")) >= 2


def test_public_files_keep_their_quotes_and_blank_lines_are_nothing():
    content = b'k,l\r\n\r\n"a\rb",""\r\n  \r\n"one, two","the ""old"""\r\n\r\n'
    expected = [("a\rb", None), ("one, two", 'the "old"')]
    assert listed(records(content, argument="domain")) == listed(records(content)) == expected
