"""Rows by bucket come back as they were added, and nothing of them stays on the disk."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from collections import Counter, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.ingest import spill
from pandas_dptree.ingest.private_keys import PathRows
from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.spill import Buckets, Packet
from pandas_dptree.ingest.tallies import Rows
from pandas_dptree.ingest.units import Units
from tests.helpers_cases import each


def packet(kind, words, place, amounts):
    """Make a packet of rows of one bucket."""
    units = Units(kind, np.array(words, dtype=np.uint64).reshape(len(place), -1))
    return Packet(
        units,
        Rows(np.array(place, dtype=np.int64), tuple(np.array(each, dtype=np.int64) for each in amounts)),
    )


def listed(packets):
    """Count the rows of packets."""
    return Counter(
        (each.units.sort, *words, place, *amounts)
        for each in packets
        for words, place, *amounts in zip(
            map(tuple, each.units.words.tolist()),
            each.rows.place.tolist(),
            *(amount.tolist() for amount in each.rows.amounts),
            strict=True,
        )
    )


PACKETS = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3), st.integers(1, 5))


@given(
    added=st.lists(st.lists(PACKETS, max_size=4), max_size=8), most=st.sampled_from([0, 1000, 4000, 2**20]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_packets_come_back_in_their_buckets(tmp_path_factory, added, most, seed):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("spill")
    expected = [Counter(), Counter(), Counter()]
    with pytest.MonkeyPatch.context() as patch, Buckets(3, folder) as buckets:
        patch.setattr(spill, "_IN_MEMORY", most)
        for batch in added:
            made = []
            for bucket, kind, width, n in batch:
                place, amount = rng.integers(9, size=(2, n))
                made.append((bucket, packet(kind, rng.integers(9, size=(n, width)), place, [amount])))
            buckets.add(made)
            for bucket, each in made:
                expected[bucket] += listed([each])
            assert not list(folder.iterdir())
        found = {bucket.number: listed(bucket.packets()) for bucket in buckets}
    assert found == {number: rows for number, rows in enumerate(expected) if rows}
    assert not list(folder.iterdir())


def test_rows_of_every_kind_are_stored(monkeypatch):
    monkeypatch.setattr(spill, "_IN_MEMORY", 0)
    units = Units(2, np.ones((2, 1), dtype=np.uint64))
    forms = (["unused", "a", ("period", "M", 0)],)
    path = PathRows(np.array([[0, 1], [1, -1]]), forms=forms)
    with Buckets(1) as buckets:
        buckets.add([(0, Packet(units, path)), (0, Packet(units, Rows(np.array([b"\1", b"\1\2"]))))])
        [bucket] = buckets
        one, other = bucket.packets()
    assert one.rows.forms == (["a"],) and one.rows.place.tolist() == [[0, 0], [1, -1]]
    assert other.rows.place.tolist() == [b"\1", b"\1\2"]


@each("rows", [1, 100, 2_000])
def test_the_memory_of_packets_is_known(rows):
    """Of a row in a packet of its own, the arrays are the least part."""
    n = 4_000
    units, own = Units(0, np.zeros((n, 2), dtype=np.uint64)), Rows(np.zeros(n, dtype=np.int64))
    tracemalloc.start()
    packets = [
        Packet(units[np.arange(start, start + rows)], own[np.arange(start, start + rows)])
        for start in range(0, n, rows)
    ]
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.5 < sum(each.n_bytes for each in packets) / taken < 2


def test_few_rows_open_no_file(tmp_path):
    missing = tmp_path / "missing"
    with Buckets(2, missing) as buckets:
        buckets.add([(0, packet(0, [1], [1], []))])
        assert [bucket.number for bucket in buckets] == [0]
    with Buckets(2) as buckets:
        assert not list(buckets)


def test_the_file_is_in_the_folder_of_choice(monkeypatch, tmp_path):
    monkeypatch.setattr(spill, "_IN_MEMORY", 0)
    rows = [(0, packet(0, [1], [1], []))]
    with Buckets(1, tmp_path / "missing") as buckets, pytest.raises(FileNotFoundError):
        buckets.add(rows)
    opened = []
    original = spill.tempfile.TemporaryFile
    monkeypatch.setattr(
        spill.tempfile,
        "TemporaryFile",
        lambda **options: opened.append(options["dir"]) or original(**options),
    )
    for folder in (None, tmp_path, str(tmp_path)):
        with Buckets(1, folder) as buckets:
            buckets.add(rows)
            buckets.add(rows)
    assert opened == [spill.tempfile.gettempdir(), str(tmp_path), str(tmp_path)]


def test_without_any_folder_not_even_few_rows_are_counted(monkeypatch, tmp_path):
    """Else the number of rows would decide it."""

    def fail():
        raise FileNotFoundError(errno.ENOENT, "no usable folder")

    monkeypatch.setattr(spill.tempfile, "gettempdir", fail)
    with pytest.raises(ReadingError, match="`temp_folder` is needed") as caught:
        Buckets(1)
    assert caught.value.__context__ is None
    with Buckets(1, tmp_path) as buckets:
        buckets.add([(0, packet(0, [1], [1], []))])


def test_a_full_disk_is_told_before_it_is_full(monkeypatch, tmp_path):
    monkeypatch.setattr(spill, "_IN_MEMORY", 0)
    usage = namedtuple("usage", "free")
    rows = [(0, packet(0, [1], [1], []))]
    monkeypatch.setattr(spill.shutil, "disk_usage", lambda folder: usage(spill._RESERVE))
    with Buckets(1, tmp_path) as buckets, pytest.raises(OSError) as caught:
        buckets.add(rows)
    assert caught.value.errno == errno.ENOSPC and caught.value.filename is None
    monkeypatch.setattr(spill.shutil, "disk_usage", lambda folder: usage(spill._RESERVE + 10**6))
    with Buckets(1, tmp_path) as buckets:
        buckets.add(rows)
    assert not list(tmp_path.iterdir())


KILLED = """
    import os, signal
    import numpy as np
    from pandas_dptree.ingest import spill
    from tests.ingest.test_spill import packet
    spill._IN_MEMORY = 0
    buckets = spill.Buckets(2, {folder!r})
    for n in range(3):
        buckets.add([(n % 2, packet(0, [7] * 10_000, range(10_000), []))])
    assert sum(1 for bucket in buckets for each in bucket.packets()) == 3
    assert os.listdir({folder!r}) == []
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_nothing_is_left_of_a_killed_process(tmp_path):
    code = textwrap.dedent(KILLED.format(folder=str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert os.listdir(tmp_path) == []
