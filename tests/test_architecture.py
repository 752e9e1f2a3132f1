"""docs/architecture.md is true: its modules, its layers, and the files that it names for a change."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name

import pytest

import pandas_dptree

PACKAGE = Path(pandas_dptree.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
SEES = {"public", "secret", "secret in, public out", "post-processing"}


def section(title):
    """The text of one section of the page."""
    return PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text):
    """The cells of each row of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def listed(text):
    """For each row of a table of modules, its path below the package (/ ends a folder), and what it sees."""
    folder = None
    for name, _, sees in rows(text):
        if package := re.fullmatch(r"\*\*`(.+/)`\*\*", name):
            folder = package[1].removeprefix(f"{PACKAGE.name}/")
            yield folder, sees
        else:
            yield f"{folder}{re.fullmatch(r'`([a-z_]+[.]py)`', name)[1]}", sees


def named(text):
    """The files and folders of the package that a text names."""
    return re.findall(r"`([a-z_/]+(?:[.]py|/))`", text)


def test_each_package_and_module_is_listed_once():
    """The `__init__.py` of a package within the package is what its own row describes."""
    times = Counter(path for path, _ in listed(section("Packages and modules")))
    paths = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    packages = {path.removesuffix("__init__.py") for path in paths if path.endswith("/__init__.py")}
    modules = {path for path in paths if not path.endswith("/__init__.py")}
    assert set(times) == {"", *packages, *modules}
    assert [path for path, number in times.items() if number > 1] == []


def test_the_page_says_what_each_module_sees():
    for path, sees in listed(section("Packages and modules")):
        assert sees in SEES if path.endswith(".py") else sees == "", path


def test_layers_are_those_of_the_contract_and_the_table_follows_them():
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    assert re.search(r"```\n(.*?)\n```", section("Layers"), re.DOTALL)[1].splitlines() == layers
    depth = {name.strip(): number for number, layer in enumerate(layers) for name in layer.split("|")}
    packages = [path.split("/")[0] for path, _ in listed(section("Packages and modules")) if "/" in path]
    assert packages == sorted(packages, key=depth.__getitem__)


@pytest.mark.parametrize("change", rows(section("Where to make a change")), ids=lambda row: row[0])
def test_files_that_a_change_needs_exist(change):
    paths = named(change[1])
    assert paths
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


@pytest.mark.parametrize("page", ["architecture.md", "methods.md"])
def test_modules_that_the_text_names_exist(page):
    """Whatever begins with the name of a package, such as `estimation.certify`."""
    packages = "|".join(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    names = set(re.findall(rf"`((?:{packages})[.](?!py`)[\w.]+)`", PAGE.with_name(page).read_text("utf-8")))
    assert len(names) >= 5
    for name in names:
        resolve_name(f"{PACKAGE.name}.{name}")


def test_tables_are_read_as_they_are():
    table = (
        "| | holds | sees |\n|---|---|---|\n| **`a/`** | | |\n| `b.py` | what | public |\n| **`a/c/`** | | |"
    )
    assert list(listed(table)) == [("a/", ""), ("a/b.py", "public"), ("a/c/", "")]
    assert named("a line in `__init__.py`, a module in `a/c/`, `--out` of `a/b.py`, `Plan`") == [
        "__init__.py",
        "a/c/",
        "a/b.py",
    ]
