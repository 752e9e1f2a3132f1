"""Interactive pages: their script, and the policy that allows no other."""

import json
from base64 import b64encode
from hashlib import sha256

import html5lib

import pandas_dptree as dpt
from pandas_dptree.output.pages.interactive import packaged


def parsed(page):
    return html5lib.parse(page.html, namespaceHTMLElements=False)


def test_the_policy_allows_exactly_the_script_of_the_page(counts):
    tree = parsed(dpt.page({"visits": counts}, title="Visits", interactive=True))
    (script,) = tree.iter("script")
    digest = b64encode(sha256(script.text.encode()).digest()).decode()
    policy = tree.find("head/meta[@http-equiv]").get("content")
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert "</script" not in packaged("page.js")


def test_the_script_has_all_of_its_words(counts):
    words = json.loads(
        parsed(dpt.page({"a": counts}, title="a", interactive=True)).find("body").get("data-words")
    )
    used = {each for each in words if f"words.{each}" in packaged("page.js")}
    assert used == words.keys() and all(words.values())


def test_other_pages_have_no_script_and_none_of_its_styles(counts):
    plain, interactive = (
        dpt.page({"visits": counts}, title="Visits", interactive=each).html for each in (False, True)
    )
    assert "<script" not in plain and "data-words" not in plain and ".tools" not in plain
    added = len(packaged("page.js")) + len(packaged("interactive.css"))
    assert added < len(interactive) - len(plain) < added + 500  # the policy and the words
