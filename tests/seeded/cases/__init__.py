"""The cases: small functions that call the public API, and return what `described` can describe.

Each module lists its own when it is imported.
"""

from tests.seeded.cases import (  # noqa: F401
    arrays,
    columns,
    derived,
    engines,
    files,
    functions,
    implicit,
    ledgers,
    options,
    output,
    plans,
    private_keys,
    records,
    shell,
    tables,
    together,
)
from tests.seeded.cases.register import BY_DEFAULT, CASES, module_of

__all__ = ["BY_DEFAULT", "CASES", "module_of"]
