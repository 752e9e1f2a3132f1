"""The versions that CI runs tests with, and that CITATION.cff names, are those that are declared."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from pandas_dptree import __version__

ROOT = Path(__file__).parents[1]


def test_the_oldest_versions_are_those_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (project["optional-dependencies"][name] for name in ("engines", "dask", "progress", "report"))
    declared = [Requirement(text) for text in {*sum(extras, project["dependencies"])}]
    lines = (ROOT / "tests" / "constraints-minimum.txt").read_text(encoding="utf-8").splitlines()
    tested = [Requirement(line) for line in lines if not line.startswith("#")]
    assert bounds(tested, "==") == bounds(declared, ">=")


def test_every_declared_python_is_tested():
    """Both by the hosted workflow and by .ci/run, which refuses any other."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = re.findall(r"Python :: (3\.\d+)", text)
    workflow, script = ((ROOT / path).read_text("utf-8") for path in (".github/workflows/ci.yml", ".ci/run"))
    assert re.findall(r'"(3\.\d+)"', re.search(r"python-version: \[(.*)\]", workflow)[1]) == declared
    minors = re.search(r'python=\$\(find_python "([\d, ]+)"', script)
    assert [f"3.{minor}" for minor in minors[1].split(", ")] == declared


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == __version__


def bounds(requirements, operator):
    """List the version of each package, and check that there is one, under that operator."""
    bound = {
        one.name: [(each.operator, Version(each.version)) for each in one.specifier] for one in requirements
    }
    assert len(bound) == len(requirements)
    assert all(kind == operator for ((kind, _),) in bound.values())
    return {name: version for name, ((_, version),) in bound.items()}
