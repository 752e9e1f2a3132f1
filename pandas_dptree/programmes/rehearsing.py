"""The page of a programme before its release: whatever a page refuses is an error of the check."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, DPTreeError, DPTreeWarning, quote
from pandas_dptree.ledger.releases import prepared_releases
from pandas_dptree.output.derived.estimates import with_linear
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.page import page
from pandas_dptree.output.pages.sections import make_sections
from pandas_dptree.output.pages.setting import Setting
from pandas_dptree.output.pages.texts import texts_of
from pandas_dptree.output.released import provenance_of
from pandas_dptree.plans.running import carry_out
from pandas_dptree.programmes.keeping import shelf_of
from pandas_dptree.programmes.outputs import can_combine, page_content
from pandas_dptree.programmes.problems import Problems
from pandas_dptree.programmes.programme import Checked

__all__ = ["rehearse"]


def rehearse(checked: Checked, problems: Problems) -> None:
    """Make the page of samples, and note what it refuses.

    A sample is a release of no records, which is nobody's and written nowhere. The table of a period before
    is the released one, or a sample too.
    """
    if "html" not in checked.outputs.write:
        return
    with problems.catching(("page",)), shelf_of(checked, frozenset()) as shelf:
        samples = _samples(checked, checked.tables)
        _check_areas(checked, samples, problems)
        if problems.found:
            return

        def before(name: str) -> Any:
            earlier = shelf.before(name)
            return _samples(checked, [name])[name] if earlier is None else earlier

        content = page_content(checked, samples, before)
        try:
            page(**content, downloads=False)
        except DPTreeError as error:
            _note_entries(checked, content, problems)
            if not problems.found:
                raise error from None


def _samples(checked: Checked, names: Collection[str]) -> dict[str, Any]:
    """Release tables of no records, with the estimates that a page reads."""
    plans = {name: checked.tables[name].plan for name in names}
    columns = {name: checked.sources[checked.tables[name].source].columns for name in names}
    empty = {name: pd.DataFrame(columns=list(own), dtype=object) for name, own in columns.items()}
    linear: dict[Any, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPTreeWarning)
        tables = carry_out(prepared_releases(plans, empty), {"rng": np.random.default_rng(0)}, linear)
    return {name: with_linear(tables[name], linear[name]) for name in names}


def _check_areas(checked: Checked, samples: Mapping[str, Any], problems: Problems) -> None:
    """Note paths of areas that no table has."""
    for area, paths in checked.page.combine.items():
        for path in paths:
            if not any(can_combine(checked, name, table, [path]) for name, table in samples.items()):
                fact = f"of {quote(area)} has the path {quote(path)}, which no table of counts has."
                hint = "write the keys from the coarsest level down."
                problems.add(("page", "combine"), fact, hint)


def _note_entries(checked: Checked, content: Mapping[str, Any], problems: Problems) -> None:
    """Note why entries are refused: those that are stated, by their numbers, and that of the areas."""
    tables, texts = content["tables"], texts_of(content["language"])
    provenances = {name: provenance_of(table) for name, table in tables.items()}
    setting = Setting(tables, provenances, texts, Labels(content["labels"], texts))
    n_stated = len(checked.page.show or checked.tables)
    for number, entry in enumerate(content["show"], start=1):
        try:
            make_sections(setting, entry)
        except DPTreeError as error:
            own = not isinstance(error, ArgumentError) or error.argument in entry
            fact = error.fact if own else error.fact.partition("` ")[2]
            stated = number <= n_stated
            path = ("page", "show" if stated else "combine")
            problems.note(path, fact, error.hint, entry=number if stated else None)
