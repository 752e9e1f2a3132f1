"""What README.md shows runs as it stands, one block after the other."""

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch):
    for package in ("matplotlib",):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    for node in ast.parse("\n".join(blocks)).body:
        if isinstance(node, ast.Expr):
            shown = eval(compile(ast.Expression(node.value), "README.md", "eval"), names)
            for frame in shown if isinstance(shown, tuple) else (shown,):
                _check_width(frame)
        else:
            exec(compile(ast.Module([node], []), "README.md", "exec"), names)
    assert (tmp_path / "report.html").stat().st_size > 10_000


def _check_width(shown):
    """Frames are printed in 80 columns, with all of their columns and rows."""
    if isinstance(shown, pd.DataFrame):
        with pd.option_context("display.width", 80):
            assert "..." not in repr(shown)
