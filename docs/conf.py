"""Sphinx configuration. The build needs no network and runs with warnings as errors (CONTRIBUTING.md)."""

import shutil
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
