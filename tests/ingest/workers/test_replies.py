"""What workers reply."""

import pickle
import sys
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from pandas_dptree.ingest.scan.batches import PandasBatch
from pandas_dptree.ingest.workers import replies
from pandas_dptree.ingest.workers.replies import Functions, discreet, failure, merged, reply
from tests.helpers_clusters import PLANTED, CountKeys, Fail, added


def sealed(functions):
    return replies.sealed(functions, pickle.dumps)


def test_a_tally_arrives_as_it_is():
    given = reply(lambda: b"tally")
    assert failure(given, "dask") is None
    assert given[1:] == b"tally"


@pytest.mark.parametrize("kind", [ValueError, Warning, MemoryError, BaseException])
def test_an_error_is_replied_without_its_text(kind):
    given = reply(lambda: Fail(kind)([]))
    error = failure(given, "dask")
    assert PLANTED.encode() not in given and PLANTED not in str(error)
    assert ("memory" in str(error)) == (kind is MemoryError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_raised(kind):
    with pytest.raises(kind):
        reply(lambda: Fail(kind)([]))


def test_the_sum_has_the_first_reply_without_a_tally():
    shared = sealed(Functions(CountKeys("a"), added))
    tally, failed = reply(lambda: pickle.dumps(Counter())), reply(lambda: Fail()([]))
    assert merged(shared, [tally, failed]) == failed
    assert pickle.loads(merged(shared, [tally, tally])[1:]) == {}


def test_functions_are_unpickled_once_and_shown_nowhere():
    """In each process. Engines log and display some of what they are passed."""
    functions = Functions(CountKeys(PLANTED), added)
    shared = sealed(functions)
    assert replies.opened(shared) is replies.opened(shared)
    assert replies.opened(shared).first == functions.first
    batch = PandasBatch(pd.DataFrame({"a": [PLANTED]}))
    assert PLANTED not in repr([shared, functions, batch])
    for _ in range(3):
        replies.opened(sealed(functions))
    assert len(replies._opened) == 2


def test_a_worker_without_the_package_says_so(monkeypatch):
    look_up = replies.found("pandas_dptree.ingest.workers.replies", "reply")
    assert look_up() is reply
    monkeypatch.setitem(sys.modules, "pandas_dptree._version", None)
    assert "cannot import pandas_dptree" in str(failure(look_up(), "dask"))


def test_a_worker_with_another_version_says_so(monkeypatch):
    look_up = replies.found("pandas_dptree.ingest.workers.replies", "reply")
    monkeypatch.setattr(sys.modules["pandas_dptree._version"], "__version__", "99.0")
    assert "has pandas_dptree 99.0" in str(failure(look_up(), "dask")) or "99.0" in str(
        failure(look_up(), "dask")
    )


def test_a_bucket_is_checked():
    functions = Functions(CountKeys("a"), added, added, n_buckets=3)
    assert functions.bucket(2) == 2
    for number in (-1, 3):
        with pytest.raises(ValueError):
            functions.bucket(number)


def test_threads_leave_the_filters_of_warnings_as_they_were():
    barrier = threading.Barrier(4)

    def overlap(number):
        def wait():
            barrier.wait(timeout=60)
            warnings.warn(PLANTED, stacklevel=1)
            if number % 2:
                barrier_of_two.wait(timeout=60)
            return b""

        result = discreet(wait)
        if not number % 2:
            barrier_of_two.wait(timeout=60)
        return result

    barrier_of_two = threading.Barrier(4)
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(overlap, range(4))) == [b""] * 4
    assert warnings.filters == before
