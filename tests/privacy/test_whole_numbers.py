"""The smallest whole number from which on a condition holds."""

from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.privacy.whole_numbers import smallest


@given(first=st.integers(-(10**6), 10**12), start=st.integers(-(10**6), 10**6), step=st.integers(1, 10**4))
def test_it_is_the_first_that_holds_from_the_start_on(first, start, step):
    assert smallest(lambda n: n >= first, start=start, step=step) == max(first, start)
