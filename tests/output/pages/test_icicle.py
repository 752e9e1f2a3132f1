"""The section with the icicle."""

import html5lib
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.pages.icicle import fits_an_icicle


@pytest.fixture(scope="module")
def counts():
    visits, clinics = dpt.datasets.clinic_visits(3_000), dpt.datasets.clinics()
    by = ["region", "district", "clinic"]
    return visits.dp.tree_counts(by, rho=0.5, domain=clinics, rng=np.random.default_rng(1))


def boxes(page):
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    return [
        "".join(title.itertext())
        for title in tree.iter()
        if isinstance(title.tag, str) and title.tag.endswith("title") and ": " in "".join(title.itertext())
    ]


def test_the_boxes_are_the_released_numbers_by_their_labels(counts):
    labels = {"region": {"Aldmark": "<b>Ald & mark"}}
    page = dpt.page({"visits": counts}, title="T", labels=labels, show=[{"table": "visits", "as": "icicle"}])
    said = boxes(page.html)
    region = counts.loc[counts["region"].eq("Aldmark") & counts["level"].eq("region"), "count"].item()
    assert f"<b>Ald & mark: {region:,}" in said
    assert f"Total: {counts['count'][0]:,}" in said
    shown = {text.rsplit(": ", 1)[1] for text in said if "smaller" not in text and "all " not in text}
    assert shown - {"boxes as high as the numbers"} <= {f"{count:,}" for count in counts["count"]}
    assert 'class="levels' not in page.html


def test_pages_begin_with_an_icicle_where_areas_can_show_the_table(counts):
    assert fits_an_icicle(counts)
    assert dpt.page({"visits": counts}, title="T").html.count("<svg") == 1
    show = [{"table": "visits", "as": "icicle"}, {"table": "visits"}]
    assert dpt.page({"visits": counts}, title="T", show=show).html.count("<svg") == 1
    assert counts.dp.to_html().count("<svg") == 1
    negative = counts.assign(count=counts["count"] - 50)
    missing = counts.assign(count=counts["count"].astype(float).where(counts["count"] > 0))
    for table in (negative, missing, counts.iloc[5:]):
        assert not fits_an_icicle(table)
        assert "<svg" not in table.dp.to_html()


def test_each_table_has_an_identifier_of_its_own(counts):
    page = dpt.page({"a b": counts, "א": counts}, title="T")
    tree = html5lib.parse(page.html, namespaceHTMLElements=False)
    identifiers = [each.get("id") for each in tree.iter() if each.get("id")]
    assert len(identifiers) == len({*identifiers})
    assert all(each.isascii() and " " not in each for each in identifiers)


def test_many_leaves_are_drawn_as_few_boxes():
    names = [f"k{number}" for number in range(60)]
    keys = pd.MultiIndex.from_product([names, names], names=["a", "b"]).to_frame(index=False)
    table = dpt.tree_counts(keys, ["a", "b"], epsilon=1.0, domain=keys)
    assert dpt.page({"t": table}, title="T", show=[{"table": "t", "as": "icicle"}]).html.count("<rect") < 800
