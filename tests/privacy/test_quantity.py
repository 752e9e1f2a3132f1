"""Values of a column on a grid of whole units: exact in decimals, one value at a time."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy.quantity import COUNT, MAX_UNITS, Quantity
from pandas_dptree.privacy.sensitivity import count_sensitivity, sum_sensitivity
from tests.helpers_cases import each

GRANULARITIES = [1, 0.01, 0.1, 0.25, 0.3, 1e-6, 1000, Decimal("0.05"), Fraction(1, 3), np.float32(0.1), 7.5]


@st.composite
def quantities(draw):
    """Draw a quantity, and its granularity as an exact fraction."""
    granularity = draw(st.sampled_from(GRANULARITIES))
    unit = Fraction(str(granularity))
    low = draw(st.integers(-MAX_UNITS, MAX_UNITS - 1))
    high = draw(st.integers(low + 1, MAX_UNITS))
    quantity = Quantity.of("x", (low * unit, high * unit), granularity)
    return draw(st.sampled_from([quantity, quantity.centred()]))


@each(
    "bounds, granularity, low, high, unit",
    [
        ((0, 500), None, 0, 500_000, "0.001"),
        ((0, 500_000), None, 0, 500_000, "1"),
        ((-3, 7), None, -30_000, 70_000, "0.0001"),
        ((0, 999_999), None, 0, 999_999, "1"),
        ((0, 1_000_000), None, 0, 100_000, "10"),
        ((1900, 2025), None, 1_900_000, 2_025_000, "0.001"),
        ((0, 0.07), 0.01, 0, 7, "0.01"),
        ((0.1 + 0.2, 0.7), 0.1, 3, 7, "0.1"),
        ((np.float32(0.1), np.int64(3)), Decimal("0.1"), 1, 30, "0.1"),
        ((0.0, 1e-9), None, 0, 100_000, "1e-14"),
        ((-1e-90, 1e-90), Fraction(1, 10**90), -1, 1, "1e-90"),
        ((0, 99.6), 1, 0, 100, "1"),
        ([0, 10], Fraction(1, 3), 0, 30, "1/3"),
    ],
)
def test_bounds_are_brought_to_the_grid(bounds, granularity, low, high, unit):
    quantity = Quantity.of("x", bounds, granularity)
    assert (quantity.low, quantity.high, quantity.unit) == (low, high, Fraction(unit))


@given(width=st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
@example(width=Fraction(10**9))
@example(width=Fraction(1, 1000))
def test_by_default_there_are_ten_to_a_hundred_thousand_steps(width):
    quantity = Quantity.of("x", (-width, 0))
    assert 10**5 <= width / quantity.unit < 10**6
    assert math.log10(quantity.unit) == pytest.approx(round(math.log10(quantity.unit)), abs=1e-12)


@given(quantity=quantities(), data=st.data())
def test_multiples_written_as_decimals_come_and_go_exactly(quantity, data):
    ends = (quantity.low, quantity.high)
    units = data.draw(st.one_of(st.sampled_from(ends), st.integers(*ends)))
    value = float(units * quantity.unit + quantity.origin)
    assert quantity.to_units(np.array([value])).tolist() == [units]
    assert quantity.from_units(units) == float(units * quantity.unit)


@given(quantity=quantities(), values=st.lists(st.floats(allow_nan=False), min_size=2))
def test_units_depend_on_their_value_alone_and_rise_with_it(quantity, values):
    units = quantity.to_units(np.array(values))
    assert units.dtype == np.int64 and (quantity.low <= units).all() and (units <= quantity.high).all()
    assert units.tolist() == [quantity.to_units(np.array([value]))[0] for value in values]
    assert (np.diff(quantity.to_units(np.sort(values))) >= 0).all()


@given(quantity=quantities(), part=st.floats(0, 1))
def test_units_are_the_nearest(quantity, part):
    place = quantity.low + part * (quantity.high - quantity.low)
    value = float(Fraction(place) * quantity.unit + quantity.origin)
    (units,) = quantity.to_units(np.array([value])).tolist()
    exact = (Fraction(value) - quantity.origin) / quantity.unit
    assert abs(units - exact) <= Fraction(1, 2) + Fraction(1, 2**20)


def test_values_beyond_the_bounds_are_clipped():
    quantity = Quantity.of("x", (-1, 2), 0.5)
    values = np.array([-np.inf, -1e308, -1.0, -0.0, 1.9, 2.0, 1e308, np.inf])
    before = values.copy()
    assert quantity.to_units(values).tolist() == [-2, -2, -2, 0, 4, 4, 4, 4]
    assert (values == before).all()
    assert Quantity.of("x", (0, 1e-90), 1e-90).to_units(np.array([1e300, 1e-90])).tolist() == [1, 1]


def test_seven_cents_are_seven_cents():
    cents = Quantity.of("x", (0, 500), granularity=0.01)
    assert cents.from_units(np.arange(50_000)).tolist() == [i / 100 for i in range(50_000)]
    assert cents.from_units(2.5) == 0.025


@given(quantity=quantities().filter(lambda quantity: not quantity.shift))
def test_a_centred_column_is_as_small_as_its_bounds_allow(quantity):
    centred = quantity.centred()
    width = quantity.high - quantity.low
    assert centred.high - centred.low == width
    assert max(-centred.low, centred.high) == (width + 1) // 2
    assert centred.low * centred.unit + centred.origin == quantity.low * quantity.unit
    value = np.array([float((quantity.low + width // 3) * quantity.unit)])
    assert (centred.to_units(value) + centred.shift).tolist() == quantity.to_units(value).tolist()
    assert centred.centred().shift - centred.shift in (0, -1, 1)


def test_a_count_is_a_sum_of_ones():
    assert (COUNT.name, COUNT.column, COUNT.non_negative) == ("count", None, True)
    for neighbors in ("add_remove", "replace"):
        how = {"neighbors": neighbors, "max_contributions": 3}
        assert COUNT.sensitivity(**how) == count_sensitivity(**how)


def test_a_quantity_describes_itself():
    debt = Quantity.of("debt", (-5, 20), 1)
    assert (debt.name, debt.non_negative, debt.origin) == ("debt", False, 0)
    assert Quantity.of("debt", (0, 20), 1).non_negative
    assert debt.sensitivity(neighbors="replace") == sum_sensitivity(-5, 20, neighbors="replace")
    assert debt == Quantity.of("debt", (Decimal(-5), 20.0), 1.0) and len({debt, debt.centred()}) == 2


@each(
    "bounds, granularity, argument",
    [
        *[
            (bounds, None, "bounds")
            for bounds in [
                (1, 0), (3, 3), (0, 0), (0, math.inf), (math.nan, 1), (0, None), ("0", "1"), (False, True),
                (0,), (0, 1, 2), 5, "05", None, {0, 1}, (0, Decimal("1e999999999")), (0, 10**400),
                (0, Decimal("1e-999999999")), (0, Decimal("sNaN")), (0, 1j), (0, np.timedelta64(5, "s")),
                (0, 1e-305), (0, 1e305), np.zeros((2, 2)),
            ]
        ],
        *[
            ((0, 1), granularity, "granularity")
            for granularity in [
                0, -0.1, math.nan, math.inf, "0.1", True, 1e-10, 2.5, Decimal("1e-999999999"),
                Fraction(10**400 + 1, 10**401),
            ]
        ],
        ((10**9, 10**9 + 1), None, "granularity"),
    ],
)  # fmt: skip
def test_a_grid_is_refused_by_the_argument_at_fault(bounds, granularity, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        Quantity.of("x", bounds, granularity)
    assert error.value.argument == argument


@each("column", [None, ["x"]])
def test_a_column_has_a_name(column):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        Quantity.of(column, (0, 1))
    assert error.value.argument == "column"


@each(
    "arguments, argument",
    [
        ({"low": 1, "high": 0}, "bounds"),
        ({"low": 0, "high": 0}, "bounds"),
        ({"low": 0.0, "high": 1.0}, "bounds"),
        ({"low": 0, "high": 5, "shift": 0.5}, "bounds"),
        ({"low": 0, "high": MAX_UNITS + 1}, "granularity"),
        ({"low": 0, "high": 5, "shift": -MAX_UNITS - 1}, "granularity"),
        ({"low": 0, "high": 5, "unit": 0.1}, "granularity"),
        ({"low": 0, "high": 5, "unit": Fraction(0)}, "granularity"),
    ],
)
def test_a_quantity_is_checked_however_it_is_made(arguments, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        Quantity(column="x", **arguments)
    assert error.value.argument == argument
