"""What README.md shows runs as it stands, one block after the other."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch):
    for package in ("matplotlib", "plotly", "great_tables"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "report.html").stat().st_size > 10_000
