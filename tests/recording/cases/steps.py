"""What a progress bar shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO


def steps_of(work: Callable[[], object]) -> list[str]:
    """List the steps on the bar with their percentages, without the time."""
    shown = StringIO()
    with redirect_stderr(shown):
        work()
    steps = re.findall(r"^(.*?: +\d+%)\|", shown.getvalue().replace("\r", "\n"), flags=re.MULTILINE)
    return list(dict.fromkeys(steps))
