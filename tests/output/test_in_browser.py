"""Pages in a browser: they fit, are accessible, and their script does what it may and no more.

This needs Chromium, node, and a folder in which npm installed playwright-core and axe-core, which
PANDAS_DPTREE_NODE names; `.ci/run` makes one.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import html5lib
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_ledger import StandIn, charge, create
from tests.helpers_output import HOSTILE
from tests.helpers_random import rng

FOLDER = os.environ.get("PANDAS_DPTREE_NODE")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = [
    name
    for name, found in {
        "a folder of npm in PANDAS_DPTREE_NODE": FOLDER,
        "Chromium": CHROMIUM,
        "node": shutil.which("node"),
    }.items()
    if not found
]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"there is no {' and no '.join(MISSING)}"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def tables(visits, clinics):
    """A table with three levels, one of means, distributions, and private keys."""
    by = ["region", "district", "clinic"]
    some = clinics.groupby("district").head(2).head(70)  # more than are drawn with bars
    odd = pd.DataFrame({"<b>place": [*HOSTILE, "Quarter"], "n": range(len(HOSTILE) + 1)}).astype(str)
    words = pd.DataFrame({"word": np.repeat(["often", "also", "once"], [900, 500, 1])})
    by_region = {"by": "region", "domain": clinics[["region"]].drop_duplicates()}
    return {
        "visits": visits.dp.tree_counts(by, domain=some, epsilon=1.0, confidence=0.95, rng=rng()),
        "odd": odd.dp.tree_counts(list(odd), domain=odd, epsilon=1.0, rng=rng()),
        "means": visits.dp.tree_means(by[:2], columns="age", bounds={"age": (0, 100)}, epsilon=1.0,
                                      domain=clinics[by[:2]].drop_duplicates(), rng=rng()),
        "cost": visits.dp.release_distribution("cost", bounds=(0, 500), bins=100, epsilon=1.0, rng=rng()),
        "ages": visits.dp.release_distribution("age", bins=[0, 18, 65, 100], epsilon=1.0, rng=rng(),
                                                   **by_region),
        "words": words.dp.tree_counts("word", private_keys=["word"], privacy_unit=dpt.ROWS, epsilon=1.0,
                                      delta=1e-6, rng=rng()),
    }  # fmt: skip


@pytest.fixture(scope="module")
def pages(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    ledger = create(folder, rho=0.5, delta=1e-6, parts=["2026-01", "2026-02"], fixed_records=True)
    charge(ledger["patients"].part("2026-01"), StandIn("1/10"), note="x" * 200)
    made = {name: folder / f"{name}.html" for name in ("all", "interactive", "ledger")}
    dpt.page(tables, title="Visits", publisher="A clinic").write(made["all"])
    some = {name: tables[name] for name in ("means", "visits", "odd")}
    dpt.page(some, title="Visits", interactive=True).write(made["interactive"])
    ledger.to_html(made["ledger"])
    return made


@pytest.fixture(scope="module")
def found(pages):
    command = ["node", Path(__file__).with_name("in_browser.mjs"), CHROMIUM, FOLDER, *pages.values()]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["all", "interactive", "ledger"])
def test_pages_fit_and_are_accessible(name, pages, found):
    for width, looked in zip((400, 1000, 1600), found[str(pages[name])], strict=True):
        assert looked == {"overflow": 0, "errors": [], "violations": []}, width


def test_the_script_sorts_searches_and_folds(found):
    used = found["used"]
    assert used["errors"] == []  # not even of the content security policy
    numbers = [[int(text.replace(",", "")) for text in texts] for texts in used["sorted"]]
    assert numbers[0] == sorted(numbers[2], reverse=True) and numbers[1] == sorted(numbers[2])
    assert numbers[0] != numbers[2]
    assert used["names"] == sorted(used["names"]) == sorted(used["before"][: len(used["names"])])
    assert len(used["folded"]) < len(used["before"]) == len(used["unfolded"])
    assert any("Quarter" in text for text in used["found"]) and len(used["found"]) < 6
    assert used["status"].split()[0].isdigit() and used["after"] == used["unfolded"]


def test_the_script_adds_nothing_to_what_the_page_says(found, pages):
    tree = html5lib.parse(pages["interactive"].read_text("utf-8"), namespaceHTMLElements=False)
    main = tree.find(".//main")
    said = [each for tag in ("td", "th", "p", "caption", "h2") for each in main.iter(tag)]
    texts = ["".join(each.itertext()) for each in [*said, tree.find(".//h1")]]
    assert sorted(texts) == sorted(found["used"]["texts"])
