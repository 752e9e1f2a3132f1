"""Sections for shares: those that the library derives, beside the numbers."""

import pytest

import pandas_dptree as dpt
from tests.helpers_output import rows_of, text_of

BY = ["region", "district"]


def test_shares_are_shown_with_their_intervals(visits, clinics):
    domain = clinics[BY].drop_duplicates()
    table = visits.dp.tree_counts(BY, domain=domain, epsilon=1.0, confidence=0.9, keep=["linear"])
    show = [{"table": "visits", "as": "proportions", "of": "total"}]
    tree, text = text_of(dpt.page({"visits": table}, title="x", show=show).html)
    expected = table.dp.proportions(of="total", confidence=0.9).iloc[1:7]
    rows = rows_of(tree)[:6]
    for row, share, lower, upper in zip(
        rows, *(100 * expected[name] for name in ("proportion", "lower", "upper")), strict=True
    ):
        assert row[4].endswith(" %") and float(row[4][:-2]) == pytest.approx(share, abs=0.06)
        if row[5].startswith("±"):
            assert float(row[5][2:]) == pytest.approx((upper - lower) / 2, abs=0.06)
        else:
            assert [float(end) for end in row[5].split(" to ")] == pytest.approx([lower, upper], abs=0.06)
    assert "Shares: Region" in text and "Each share is a part of total." in text


def test_shares_of_a_table_without_linear_estimates_are_refused(counts):
    with pytest.raises(dpt.ArgumentError, match="linear"):
        dpt.page({"t": counts}, title="x", show=[{"table": "t", "as": "proportions"}])
