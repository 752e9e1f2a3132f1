"""Loops over cases run all of them, and fail if one does."""

import pytest

from tests.helpers_cases import each


def test_every_failure_is_reported():
    seen = []

    @each("seed", range(5))
    @each(("text", "size"), [("a", 1), pytest.param("b", 2, id="long")])
    def check(prefix, seed, text, size):
        seen.append((prefix, seed, text, size))
        assert seed != 3
        if seed == 4 and size == 2:
            pytest.fail("too long")
        if seed == 0:
            pytest.skip("not here")

    with pytest.raises(ExceptionGroup, match="3 of 5 cases failed") as caught:
        check(prefix="x")
    assert seen == [("x", seed, *rest) for seed in range(5) for rest in (("a", 1), ("b", 2))]
    first, second, third = caught.value.exceptions
    assert [len(group.exceptions) for group in (first, second, third)] == [2, 2, 1]
    assert second.__notes__ == ["in the case {'seed': 3}"]
    assert third.exceptions[0].__notes__ == ["in the case long"]
    assert "too long" in str(third.exceptions[0])


@pytest.mark.parametrize("cases", [[], [pytest.param(1, marks=pytest.mark.skip)]])
def test_cases_that_would_not_run_are_refused(cases):
    with pytest.raises(AssertionError):
        each("size", cases)


@each("size", [1, 2])
def test_fixtures_are_passed(tmp_path, size):
    assert tmp_path.is_dir() and size
