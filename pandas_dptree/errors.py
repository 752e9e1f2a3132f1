"""Everything this package raises on purpose.

Each error states the fact, names the argument or columns at fault, and ends in a hint that says what
would work. The facts are attributes too, so that a program need not parse the text. No message ever
holds anything computed from records.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ArgumentError", "ColumnsError", "DPTreeError", "DomainError", "MissingExtraError"]


class DPTreeError(Exception):
    """Base of every error this package raises on purpose.

    Attributes
    ----------
    fact : str
        What is wrong.
    hint : str
        What would work instead.
    """

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(f"{fact}\nHint: {hint}")
        self.fact = fact
        self.hint = hint


class ArgumentError(DPTreeError, ValueError):
    """An argument that cannot be used.

    Attributes
    ----------
    argument : str
        The name of the argument.
    """

    def __init__(self, argument: str, fact: str, *, hint: str) -> None:
        super().__init__(f"`{argument}` {fact}", hint=hint)
        self.argument = argument


class DomainError(ArgumentError):
    """A public domain that is not the leaves of one tree."""

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__("domain", fact, hint=hint)


class ColumnsError(ArgumentError, KeyError):
    """Columns that are missing, repeated or of a kind that cannot be matched.

    Attributes
    ----------
    columns : tuple
        Every column at fault.
    """

    def __init__(self, argument: str, fact: str, *, columns: Iterable[object], hint: str) -> None:
        self.columns = tuple(columns)
        listed = ", ".join(repr(column) for column in self.columns)
        super().__init__(argument, f"{fact}: {listed}.", hint=hint)

    def __str__(self) -> str:
        """Return the message itself (a KeyError would print its repr)."""
        return str(self.args[0])


class MissingExtraError(DPTreeError, ImportError):
    """An optional package that the call needs and that is not installed.

    Attributes
    ----------
    package : str
        The package that is missing.
    extra : str
        The extra of pandas_dptree that installs it.
    """

    def __init__(self, what: str, *, package: str, extra: str, hint: str = "") -> None:
        install = f'pip install "pandas_dptree[{extra}]"'
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed.",
            hint=f"{install}{'; ' + hint if hint else ''}.",
        )
        self.package = package
        self.extra = extra
