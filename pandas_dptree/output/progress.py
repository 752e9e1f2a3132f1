"""A progress bar on standard error.

**Privacy.** The steps, their names, their order and their shares of the bar follow from a plan alone. No
number of records is shown, and no rate. The elapsed time may depend on the records, as the time of the
release itself does: the bar is for the person who runs the release, who has the records anyway, and not for
publishing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pandas_dptree.errors import ArgumentError, MissingExtraError, quote, visible

__all__ = ["Done", "Step", "nothing", "progress_bar"]

Step = tuple[str, int]
"""The name of a step, and its work relative to the other steps, such as its number of nodes."""

Done = Callable[[], None]
"""Called when a step is done and the next one begins."""

_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"


def nothing() -> None:
    """Show no progress."""


@contextmanager
def progress_bar(shown: bool, steps: Sequence[Step]) -> Iterator[Done]:
    """Show a bar while a block of code runs, if `shown`.

    `steps` are those of the block, in order, from public arguments alone. The block gets a function to call
    after each step but the last, which ends with the block. tqdm is imported only if there is a bar.
    """
    if not isinstance(shown, bool):
        raise ArgumentError(
            "progress",
            f"must be True or False, not {quote(shown)}.",
            hint="True shows a bar on standard error.",
        )
    if not shown:
        yield nothing
        return
    tqdm = _tqdm()
    names, sizes = zip(*((visible(name), size) for name, size in steps), strict=True)
    following = zip(names[1:], sizes, strict=False)
    # Every step is shown when it begins, however fast, so the output does not depend on the time.
    with tqdm(total=sum(sizes), desc=names[0], bar_format=_FORMAT, mininterval=0, miniters=1) as bar:

        def done() -> None:
            name, size = next(following)
            bar.set_description_str(name, refresh=False)
            bar.update(size)

        yield done
        bar.update(sizes[-1])


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("A progress bar", package="tqdm") from None
    return tqdm
