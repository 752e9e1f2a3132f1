"""How public functions are called: what they refuse, and their signatures and documentation."""

import inspect
import subprocess
import sys

import pytest

import pandas_dptree as dpt
from pandas_dptree import CallError, arrays
from pandas_dptree.accessors.arrays import DataArrayAccessor, DatasetAccessor
from pandas_dptree.accessors.frames import DataFrameAccessor, SeriesAccessor
from pandas_dptree.arrays import several
from pandas_dptree.signatures import public

PUBLIC = {
    name: function
    for module in (dpt, arrays, several)
    for name, function in vars(module).items()
    if name in module.__all__ and inspect.isfunction(function)
} | {
    f"{accessor.__name__}.{name}": function
    for accessor in (DataFrameAccessor, SeriesAccessor, DataArrayAccessor, DatasetAccessor)
    for name, function in vars(accessor).items()
    if not name.startswith("_")
    and inspect.isfunction(function)
    and name not in ("release", "level", "margin", "domain", "to_html")
}


@pytest.mark.parametrize("function", PUBLIC.values(), ids=PUBLIC)
def test_every_public_function_says_what_it_does_not_take(function):
    named = "aggregations" in inspect.signature(function).parameters
    hint = "name what the table shows in one mapping" if named else "it takes"
    with pytest.raises(
        CallError, match=f"`no_such_option` is not an argument of {function.__name__}.\nHint: {hint}"
    ):
        function(no_such_option=1)
    assert inspect.signature(function).parameters
    assert function.__doc__


def test_signatures_and_documentation_stay_as_they_are():
    signature = inspect.signature(dpt.tree_sums)
    assert signature.parameters["bounds"].default is inspect.Parameter.empty  # type checkers miss it, too
    assert list(signature.parameters)[:4] == ["frame", "by", "columns", "bounds"]
    assert dpt.tree_sums.__name__ == "tree_sums"
    assert dpt.tree_sums.__module__ == "pandas_dptree.verbs.tables"
    assert "Parameters" in dpt.tree_sums.__doc__


def test_type_errors_within_a_function_are_left_alone():
    @public
    def function(value: int) -> int:
        return value + "text"

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        function(3)
    assert not isinstance(caught.value, CallError)


@pytest.mark.nightly
def test_a_missing_bound_is_an_error_of_types_too(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(
        "import pandas as pd\nimport pandas_dptree as dpt\n"
        "frame = pd.DataFrame({'state': ['CA']})\n"
        "dpt.tree_sums(frame, 'state', columns='cost', epsilon=1.0)\n"
        "dpt.tree_counts(frame, 'state', eplison=1.0)\n"
        "dpt.tree_counts(frame, 'state', epsilon=1.0)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", script],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    assert "script.py:4: error: Missing named argument" in printed
    assert "script.py:5: error: Unexpected keyword argument" in printed
    assert "script.py:6" not in printed
