"""``dptree``: the verbs for shell scripts."""

from pandas_dptree.cli.commands import main

__all__ = ["main"]
