"""Elements of HTML."""

import html5lib
import pytest

from pandas_dptree.output.html import Markup, element


def test_text_and_attributes_are_escaped_once_and_markup_is_kept():
    inner = element("b", "<i> & \"'")
    outer = element(
        "p", "a", [inner, (1, 2.5)], None, False, True, class_="x\"<&'", data_row=3, hidden=True, title=None
    )
    assert inner == "<b>&lt;i&gt; &amp; \"'</b>"
    assert outer == f'<p class="x&quot;&lt;&amp;&#x27;" data-row="3" hidden>a{inner}12.5</p>'
    assert isinstance(outer, Markup)
    assert element("br") == "<br/>"
    assert element("p", map(str, [1, 2])) == "<p>12</p>"


@pytest.mark.parametrize(
    "text",
    ["<script>", "&lt;", "\x00\x1b[31m", "\ud800", "\uffff", "א‮b", "x" * 10_000, "a\tb\nc", "]]>", "-->"],
)
def test_any_text_is_read_back_as_it_is_or_with_its_bad_characters_replaced(text):
    parsed = html5lib.parse(element("html", element("p", text, title=text)), namespaceHTMLElements=False)
    paragraph = parsed.find(".//p")
    assert len(paragraph) == 0
    assert paragraph.text == paragraph.get("title")
    replaced = "".join("\ufffd" if c in "\x00\x1b\ud800\uffff" else c for c in text)
    assert paragraph.text == replaced
    paragraph.text.encode()
