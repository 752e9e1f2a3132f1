"""The cases: small functions that call the public API, and return what `described` can describe.

Each module lists its own when it is imported.
"""

from tests.recording.cases import (  # noqa: F401
    arrays,
    columns,
    derived,
    functions,
    implicit,
    options,
    output,
    plans,
    records,
    shell,
    tables,
    wrong,
)
from tests.recording.cases.register import CASES

__all__ = ["CASES"]
