"""Sphinx configuration. The build needs no network and runs with warnings as errors (CONTRIBUTING.md)."""

import io
import runpy
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import sphinx_autosummary_accessors

import pandas_dptree

here = Path(__file__).parent

project = "pandas_dptree"
author = "The pandas_dptree developers"
copyright = "2026, the pandas_dptree developers"
version = release = pandas_dptree.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_autosummary_accessors",
    "myst_nb",
]
templates_path = ["_templates", sphinx_autosummary_accessors.templates_path]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
default_role = "py:obj"  # single backticks in docstrings are names of this package, or plain text

# The notebooks live beside docs/ and are shown with the outputs that are stored in them. (The tests
# execute them.) Sphinx reads only what lies below docs/, so a copy is made where git does not look.
nb_execution_mode = "off"
notebooks = here / "generated" / "notebooks"
shutil.rmtree(notebooks, ignore_errors=True)
notebooks.mkdir(parents=True)
for notebook in sorted((here.parent / "notebooks").glob("*.ipynb")):
    shutil.copy(notebook, notebooks)
# The pages that the examples publish of simulated records, beside those of the documentation.
examples = here / "generated" / "examples"
examples.mkdir(parents=True, exist_ok=True)
for name, period in {"clinics": "2025-02", "weblogs": "2025-W14", "census": ""}.items():
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        runpy.run_path(str(here / "examples" / name / "run.py"))["main"](Path(folder))
        shutil.copy(Path(folder, "published", period, "index.html"), examples / f"example-{name}.html")
html_extra_path = ["generated/examples"]

# Pages that ask for it in their front matter (the tutorial) are executed while they are built.
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # a busy machine is slow, not wrong
nb_merge_streams = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # numpydoc prints the types, in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"pandas_dptree {release}"
html_show_sphinx = False
