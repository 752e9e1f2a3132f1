"""Files are written whole or not at all."""

import os

import pytest

import pandas_dptree as dpt


def test_a_file_is_written_whole_or_not_at_all(counts, tmp_path, monkeypatch):
    table = counts.head(7)
    assert table.dp.to_html(tmp_path / "report.html") is None
    written = (tmp_path / "report.html").read_bytes()
    assert written.decode() == table.dp.to_html()
    assert os.stat(tmp_path / "report.html").st_mode & 0o200
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(dpt.ArgumentError, match="cannot be written"):
        counts.head(3).dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == written
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(dpt.ArgumentError, match="cannot be written"):
        table.dp.to_html(tmp_path / "nowhere" / "report.html")
    with pytest.raises(dpt.ArgumentError, match=r"`path` cannot be written: 5\.\nHint: "):
        table.dp.to_html(5)


def test_what_a_link_leads_to_is_replaced(counts, tmp_path):
    target = tmp_path / "folder" / "target.html"
    target.parent.mkdir()
    (tmp_path / "report.html").symlink_to(target)
    counts.dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").is_symlink() and target.read_text().startswith("<!")


def test_what_is_no_unicode_is_replaced(counts, tmp_path):
    counts.head(7).dp.to_html(tmp_path / "report.html", title="a\ud800b")
    assert "<h1>a\ufffdb</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
