"""Which files are meant by paths, patterns and folders."""

import os
from pathlib import Path

import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.files.record_paths import record_files
from tests.helpers_cases import each


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in (
        "b.csv",
        "a.csv",
        "c.CSV.gz",
        "day=2/x.parquet",
        "day=1/x.parquet",
        "day=1/_note",
        ".d/y.csv",
    ):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@each(
    ("given", "found"),
    [
        (["data/b.csv", "data/a.csv"], ["b.csv", "a.csv"]),  # in the order of the caller
        (["data/*.csv"], ["a.csv", "b.csv"]),
        (["data/*.csv", "data/*.CSV.gz"], ["a.csv", "b.csv", "c.CSV.gz"]),
        (["data/day=*/*.parquet"], ["day=1/x.parquet", "day=2/x.parquet"]),
        (["data/**/*.parquet"], ["day=1/x.parquet", "day=2/x.parquet"]),
        (["data/day=*"], ["day=1/x.parquet", "day=2/x.parquet"]),  # folders that match
        (["data/day=1"], ["day=1/x.parquet"]),
    ],
)
def test_files_are_found_in_sorted_order(folder, given, found):
    assert [file.path for file in record_files(given)] == [Path("data", name) for name in found]


def test_a_file_whose_name_is_a_pattern(folder):
    (folder / "[ab].csv").touch()
    assert [file.path.name for file in record_files(["data/[ab].csv"])] == ["[ab].csv"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["data/*.tsv"], "matches no file: 'data/*.tsv'"),
        (["data/.d/z*"], "matches no file"),
        (["data/a.tsv"], "is a file of unknown type: 'data/a.tsv'"),
        (["data/*"], "are files of several kinds: CSV and Parquet"),
        (["data/a.csv", "data/day=1"], "are files of several kinds: CSV and Parquet"),
        (["data/a.csv", "data/*.csv"], "names a file twice, the second time as 'data/*.csv': file 1 of 2"),
        (["data/a.csv", "data/../data/a.csv"], "names a file twice"),
        (["data/a.csv", "data/link.csv"], "names a file twice"),
        (["data/a.csv", "data/hard.csv"], "names a file twice"),
    ],
    ids=str,
)
def test_files_that_cannot_be_meant(folder, given, said):
    (folder / "link.csv").symlink_to("a.csv")
    os.link(folder / "a.csv", folder / "hard.csv")
    if any("*" in each for each in given):
        (folder / "link.csv").unlink()
        (folder / "hard.csv").unlink()
    with pytest.raises(ArgumentError) as caught:
        record_files(given)
    assert said in caught.value.fact and caught.value.argument == "records"


def test_names_that_were_found_are_not_shown(folder):
    """Those of folders may be keys of records, even of those in another file."""
    (folder / "person=Ann").mkdir()
    (folder / "person=Ann" / "x.tsv").touch()
    for given in ("data", "data/person=*", "data/*/*.tsv"):
        with pytest.raises(ArgumentError) as caught:
            record_files([given])
        assert "Ann" not in str(caught.value) and repr(given) in str(caught.value)


def test_pipes_are_refused(folder):
    """They cannot be opened again: what is read at first, the header, would be gone."""
    os.mkfifo(folder / "pipe.csv")
    with pytest.raises(ArgumentError, match="is not a regular file"):
        record_files(["data/pipe.csv"])


def test_links_back_are_not_followed_forever(folder):
    (folder / "day=1" / "again").symlink_to(folder / "day=1")
    assert len(record_files(["data/day=1"])) == 1


def test_keys_that_folders_state(folder):
    path = folder / "k=a%2Fb" / "l=__HIVE_DEFAULT_PARTITION__" / "m=" / "n=1=2" / "x.csv"
    path.parent.mkdir(parents=True)
    path.touch()
    (file,) = record_files([str(path)])
    assert dict(file.folder_keys()) == {"k": "a/b", "l": None, "m": None, "n": "1=2"}
