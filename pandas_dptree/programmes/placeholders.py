"""The one placeholder of a programme, such as ``{month}``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pandas_dptree.programmes.periods import UNITS, before
from pandas_dptree.programmes.problems import Section
from pandas_dptree.programmes.programme import Period

__all__ = ["NO_PLACEHOLDER", "Placeholder"]

NO_PLACEHOLDER: Final = "is no placeholder of this programme"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The period of a run, which replaces its unit in braces. None if a programme has no ``each``."""

    period: Period | None

    @property
    def example(self) -> str:
        """What a programme writes for the whole period."""
        return "a placeholder" if self.period is None else f'"{{{self.period.unit}}}"'

    def fill(self, text: str) -> str:
        """Replace the placeholder."""
        return text if self.period is None else text.replace(f"{{{self.period.unit}}}", self.period.text)

    def fill_before(self, text: str) -> str | None:
        """Replace the placeholder by the period before; None if there is none."""
        if self.period is None or f"{{{self.period.unit}}}" not in text:
            return None
        return text.replace(f"{{{self.period.unit}}}", before(self.period).text)

    def period_in(self, text: str | None) -> Period | None:
        """Return the period, if a text is its placeholder and nothing else."""
        return self.period if self.period is not None and text == f"{{{self.period.unit}}}" else None

    def check(self, section: Section, key: str, text: str | None) -> None:
        """Note placeholders in the text of a key that a programme does not define."""
        own = None if self.period is None else self.period.unit
        for name in re.findall(r"\{([^{}]*)\}", text or ""):
            if name == own:
                continue
            fact = f"{{{name}}} {NO_PLACEHOLDER}."
            if own is not None:
                section.add(key, fact, f"the only one is {{{own}}}, from each.")
            else:
                hint = f'add each = "{name}" above the first table.' if name in UNITS else "leave it out."
                section.add(key, fact, hint)
