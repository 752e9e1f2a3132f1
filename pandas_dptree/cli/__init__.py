"""``dptree``: releases and plans from the shell."""

from pandas_dptree.cli.commands import main

__all__ = ["main"]
