"""The page that an oversight board reads."""

import html5lib
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_ledger import StandIn, charge, create


@pytest.fixture
def ledger(tmp_path):
    ledger = create(tmp_path, rho=0.5, delta=1e-6, parts=["2026-01", "2026-02"], fixed_records=True)
    ledger.add_account("<script>clinics", epsilon=1.0, privacy_unit=dpt.ROWS, neighbors="replace")
    january = ledger["patients"].part("2026-01")
    ledger["patients"].mark_released([charge(january, StandIn("1/10"), note="<b>one</b>")])
    charge(january, StandIn("1/10"), note="<b>one</b>", allow_repeat=True)
    return ledger


def text_of(page):
    return " ".join("".join(html5lib.parse(page, namespaceHTMLElements=False).itertext()).split())


def test_what_the_page_says(ledger):
    text = text_of(ledger.to_html())
    for expected in (
        "Account “patients”",
        "everyone named in the column “person”, with all of their records",
        "whether one of them is in the data at all",
        "approximate zero-concentrated differential privacy with ρ = 0.5 and δ = 1e-06",
        "Spent in the part that has spent most: 0.2 of rho=0.5 and nothing of delta=1e-06, by 2 charges.",
        "Left for all parts: 0.3 of rho=0.5",
        "Charged, but no output is known: entries 5.",
        "must be in one part only",
        "Assumed by the publisher: no record depends on an earlier release.",
        "(again, after entry 4)",
        "Account “<script>clinics”",
        "each single record",
        "pure differential privacy with ε = 1.0",
        "Nothing was charged so far.",
        "has 5 entries",
        ledger.head.digest,
        StandIn("1/10").digest,
    ):
        assert expected in text, expected


def test_texts_are_escaped(ledger):
    page = ledger.to_html(title="<i>Title</i>")
    assert "<b>one" not in page and "<script>" not in page and "<i>" not in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page and "&lt;i&gt;Title" in page
    html5lib.HTMLParser(strict=True).parse(page)


def test_useless_caps_are_marked(tmp_path):
    assert "protects nobody" in create(tmp_path, "useless.sqlite", epsilon=50.0).to_html()
    assert "protects nobody" not in create(tmp_path, "useful.sqlite", epsilon=1.0).to_html()


def test_the_page_is_written_to_a_file(ledger, tmp_path):
    assert ledger.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text("utf-8") == ledger.to_html()
    with pytest.raises(ArgumentError, match="`path` cannot be written"):
        ledger.to_html(tmp_path / "missing" / "page.html")
    with pytest.raises(ArgumentError, match="`title` must be text"):
        ledger.to_html(title=3)
    with pytest.raises(ArgumentError, match="`path` is the ledger itself"):
        ledger.to_html(ledger.path)
    assert ledger.verify() == ledger.head


def test_a_long_note_does_not_push_the_other_columns_away(tmp_path):
    with create(tmp_path) as ledger:
        charge(ledger["patients"], note="x" * 200)
        page = ledger.to_html()
    assert "overflow-wrap: anywhere" in page
    assert f'<td><span class="wraps"><bdi>{"x" * 200}</bdi></span></td>' in page


def test_what_is_spent_is_a_bar_of_its_cap(ledger):
    tree = html5lib.parse(ledger.to_html(), namespaceHTMLElements=False)
    bars = [each.get("style") for each in tree.iter() if each.get("class") == "meter"]
    assert bars == ["--v:0.4", "--v:0.4", "--v:0", "--v:0.2", "--v:0.2", "--v:0"]


def test_digests_are_folded_away(ledger):
    tree = html5lib.parse(ledger.to_html(), namespaceHTMLElements=False)
    folded = "".join(tree.find(".//details").itertext())
    assert StandIn("1/10").digest in folded and ledger.head.digest in folded
