"""What several tests share."""

import os

# Tests run in a process on each core. This is read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time

import pandas as pd
import pytest
from hypothesis import is_hypothesis_test, settings

import pandas_dptree as dpt
import pandas_dptree.api  # so that no test takes the time of it

# What lands is decided by the same examples every time; elsewhere each run tries new ones.
FEW, MANY = 25, 100
for name, number in {"few": FEW, "many": MANY}.items():
    settings.register_profile(
        name, max_examples=number, deadline=None, derandomize=bool(os.environ.get("CI"))
    )
settings.load_profile("few")

MOST_SECONDS = 2.0
"""CPU time of a default test at which it fails: four times what one may take, so that noise fails none."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests by what they need, and the nightly ones as slow too."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("examples")
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a default test that takes much more CPU time than one should.

    It is compared with a loop, so that other work on the machine fails no test. With more examples, or while
    coverage is measured, tests may take longer.
    """
    start = process_time()
    result = yield
    seconds = process_time() - start
    longer = settings.default.max_examples > FEW or "coverage" in sys.modules
    may = {"slow", "spark", "tripwire"} & {mark.name for mark in item.iter_markers()}
    if seconds > MOST_SECONDS and not longer and not may and seconds > MOST_SECONDS * _slowness():
        pytest.fail(
            f"took {seconds:.1f} CPU seconds: a default test has 0.5. Make its world smaller, and mark the "
            "full one slow; a test that guards a guarantee may be marked as its tripwire.",
            pytrace=False,
        )
    return result


def _slowness():
    """How many times longer a loop takes than on an idle core (0.04 CPU seconds), at least 1."""
    start = process_time()
    for _ in range(3_000_000):
        pass
    return max(1.0, (process_time() - start) / 0.04)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Find the folder of real records, or skip."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PANDAS_DPTREE_DATA", default))
    if not (folder / "zipcodes.csv").is_file():
        pytest.skip(f"no real records: set PANDAS_DPTREE_DATA to their folder (looked in {folder.name!r})")
    return folder


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Simulate some visits to clinics; a test may not change them."""
    return dpt.datasets.clinic_visits(2_000)


@pytest.fixture(scope="module")
def clinics() -> pd.DataFrame:
    """List all clinics, of which visits are."""
    return dpt.datasets.clinics()


ENDED = []
"""Connections to a Java that has ended, kept since Python warns of those that it collects."""


@pytest.fixture(scope="session")
def start_spark(tmp_path_factory):
    """Return a function that starts Spark with two workers that try a task four times, or starts it anew.

    The log of a session is the file `spark.log_path`.
    """
    pyspark = pytest.importorskip("pyspark", reason="no pyspark: pip install pyspark")
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    if shutil.which(java) is None:
        pytest.skip("no Java, which Spark needs: install Java 17, or set JAVA_HOME")

    def start():
        folder = tmp_path_factory.mktemp("spark")
        builder = pyspark.sql.SparkSession.builder.master("local[2,4]").appName("tests")
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.local.dir": str(folder),
            "spark.sql.session.timeZone": "America/Los_Angeles",
            "spark.sql.shuffle.partitions": "5",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.ui.enabled": "false",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        own = os.dup(2)
        try:  # Java and the workers keep the file that they start with
            with open(folder / "log.txt", "wb") as log:
                os.dup2(log.fileno(), 2)
            session = builder.getOrCreate()
        finally:
            os.dup2(own, 2)
            os.close(own)
        session.log_path = folder / "log.txt"
        return session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv(
            "PYTHONPATH", str(Path(__file__).resolve().parents[1])
        )  # workers import the functions of tests
        sessions = []

        def running():
            """Return the session of this process; if its Java has ended, say so and start another one."""
            if sessions and not _answers(sessions[-1]):
                last = sessions[-1].log_path.read_text(errors="replace")[-1_000:]
                print(f"Java ended between two test files. Its log ends with:\n{last}", file=sys.__stderr__)
                ENDED.append(pyspark.SparkContext._gateway)
                pyspark.SparkContext._active_spark_context = None
                pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None
                pyspark.sql.SparkSession._instantiatedSession = None
                pyspark.sql.SparkSession._activeSession = None
                sessions.append(start())
            if not sessions:
                sessions.append(start())
            return sessions[-1]

        yield running
        with suppress(OSError):  # Java may have ended before
            if sessions:
                sessions[-1].stop()


@pytest.fixture(scope="module")
def spark(start_spark):
    """Return a session of Spark that answers, the same for all test files unless its Java has ended."""
    return start_spark()


def _answers(session):
    """Return whether the Java of a session of Spark still runs."""
    try:
        return session.sparkContext._jsc.sc().isStopped() is False
    except Exception:  # py4j has several errors for this
        return False


@pytest.fixture(scope="module")
def cluster():
    """Start a cluster of dask with two processes."""
    distributed = pytest.importorskip("distributed", reason="no distributed: pip install dask distributed")
    dask = pytest.importorskip("dask")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": "1GB"}
    # Some time after a worker was lost, a LocalCluster gives it up if it is just being started once more.
    kept = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with kept, distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client
