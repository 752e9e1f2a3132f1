"""How the modules of the package depend on each other, and that tests lie where the modules do.

Imports for type checking count, and so do those inside of functions: whoever reads a module follows them all.
What merely importing a module brings along (the packages that it lies in) does not count.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pandas_dptree

ROOT = Path(pandas_dptree.__file__).parent
TESTS = Path(__file__).parent
TOPICS = {
    "arrays": ["maps"],
    "cli": [
        "people", "plan_files", "private_keys", "secret_check", "verified_files", "verified_values",
        "verify_delta", "written_files",
    ],
    "estimation": ["peers"],
    "hierarchy": ["domain_source"],
    "ingest": ["caps", "crossed_cells", "one_record", "private_keys_neighbors"],
    "ledger": ["crashes", "model"],
    "mechanisms/multiplicative": ["evidence", "privacy"],
    "output": ["in_browser"],
    "output/derived": ["coverage", "crossed", "exact_coverage"],
    "plans": [
        "crossed_check", "detection_probability", "distribution_json", "forged_plans", "people_bounds",
        "private_keys_bounds", "private_keys_privacy", "sums_from_middle", "typed_numbers",
    ],
    "privacy": ["laplace_composition"],
    "programmes": ["examples", "kills"],
    "verbs": [
        "caps", "crossed_domains", "engine_messages", "engines", "every_verb", "hints", "means", "messages",
        "no_trace", "odd_keys", "one_record", "prefixes", "rho_with_delta", "sums", "uneven_hierarchies",
        "warnings",
    ],
}  # fmt: skip
"""Files of tests that are named after a topic: it spans modules, or is large enough for a file of its own."""

UNUSUAL = set(
    "house impossible law laws measuring mend mended recall road room settle settled staircase told "
    "ways written".split()
)
"""Words that have a standard term in this field, which names should use instead."""


@cache
def sources():
    """The syntax tree of each module, by its name."""
    paths = {
        ".".join(["pandas_dptree", *path.relative_to(ROOT).with_suffix("").parts]): path
        for path in ROOT.rglob("*.py")
    }
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8")) for name, path in paths.items()
    }


@cache
def import_statements(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(tree, modules):
    """Each module of the package that a source imports from, with the name that it takes from there."""
    for node in import_statements(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                if whole in modules:
                    yield whole, ""
                elif node.module in modules:
                    yield node.module, each.name


def cycles(imports):
    """The largest sets of modules each of which leads to all the others."""

    def reached(start):
        seen, ahead = set(), [start]
        while ahead:
            new = imports[ahead.pop()] - seen
            seen |= new
            ahead += new
        return seen

    reach = {module: reached(module) for module in imports}
    found = {frozenset(m for m in reach[module] if module in reach[m]) for module in imports}
    return sorted(map(set, found - {frozenset()}), key=sorted)


def private_names(module, tree, modules):
    """The private names that a source takes from other modules."""
    for other, name in imported(tree, modules):
        if other != module and is_private(name):
            yield f"{other}.{name}"
    bound = {
        each.asname or each.name: f"{node.module}.{each.name}"
        for node in import_statements(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if f"{node.module}.{each.name}" in modules
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_private(node.attr):
            if node.value.id in bound:
                yield f"{bound[node.value.id]}.{node.attr}"


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def words_of_names(module, tree):
    """The words that the names of a module, its functions, classes and parameters are made of."""
    names = module.split(".")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.arg):
            names.append(node.arg)
    return {word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


@pytest.mark.tripwire
def test_no_modules_import_each_other():
    modules = sources()
    found = cycles({name: {other for other, _ in imported(tree, modules)} for name, tree in modules.items()})
    assert found == []


def test_private_names_stay_in_their_modules():
    modules = sources()
    taken = {name: sorted(private_names(name, tree, modules)) for name, tree in modules.items()}
    assert {name: names for name, names in taken.items() if names} == {}


def test_names_use_the_terms_of_the_field():
    """Each unusual word has a standard term: detection probability for recall, strategy for ways."""
    found = {name: sorted(words_of_names(name, tree) & UNUSUAL) for name, tree in sources().items()}
    assert {name: words for name, words in found.items() if words} == {}
    assert words_of_names("p.told", ast.parse("def _staircase(law): pass")) == {
        "p",
        "told",
        "staircase",
        "law",
    }


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a", "c"}, "c": set()}, [{"a", "b"}]),
        ({"a": {"a"}, "b": {"c"}, "c": {"d"}, "d": {"b", "a"}}, [{"a"}, {"b", "c", "d"}]),
    ],
)
def test_cycles_are_found(imports, expected):
    assert cycles(imports) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from p.a import x, _y", ["p.a._y"]),
        ("if TYPE_CHECKING:\n    from p.a import _y as y", ["p.a._y"]),
        ("def f():\n    from p import a\n    return a._y + a.x", ["p.a._y"]),
        ("from p.a import __version__\nfrom q import _y", []),
    ],
)
def test_private_names_are_found(source, expected):
    assert list(private_names("p.b", ast.parse(source), {"p": None, "p.a": None, "p.b": None})) == expected


def test_files_of_tests_are_named_after_modules():
    found, missing = {}, []
    for path in sorted(TESTS.rglob("test_*.py")):
        folder, name = path.parent.relative_to(TESTS), path.stem.removeprefix("test_")
        module = ROOT / folder / name
        if folder.parts and not module.is_dir() and not module.with_suffix(".py").is_file():
            found.setdefault(folder.as_posix(), []).append(name)
        if not (ROOT / folder).is_dir():
            missing.append(folder.as_posix())
    assert found == TOPICS
    assert missing == []


def test_no_tests_are_imported_by_others():
    """The text is searched, since parsing all tests would take seconds."""
    lines = re.compile(r"^\s*(?:from|import) (tests[.](?:\w+[.])*test_\w+)", re.MULTILINE)
    assert lines.findall("    from tests.a.test_b import c") == ["tests.a.test_b"]
    paths = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("*.py")}
    taken = {name: lines.findall(path.read_text("utf-8")) for name, path in paths.items()}
    taken = {
        name: set(modules) - {f"tests.{name.removesuffix('.py').replace('/', '.')}"}
        for name, modules in taken.items()
    }
    assert {name: modules for name, modules in taken.items() if modules} == {}


def test_importing_the_package_imports_little():
    """All else takes longer than half of importing pandas and xarray."""
    code = (
        "import sys, pandas, xarray; before = set(sys.modules); import pandas_dptree; "
        "print(*sorted(set(sys.modules) - before)); assert {'tree_counts', 'Tree'} <= set(dir(pandas_dptree))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pandas_dptree", "pandas_dptree._version", "pandas_dptree.accessors"]
