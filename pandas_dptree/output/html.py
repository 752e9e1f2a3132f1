"""Elements of HTML and SVG as functions; all text of pages is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, Union

__all__ = ["Child", "Markup", "clean", "element"]

_WITHOUT_END: Final = frozenset(
    {"br", "circle", "input", "line", "link", "meta", "path", "polygon", "polyline", "rect", "use"}
)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Union[str, int, float, bool, None, Iterable["Child"]]  # noqa: UP007
"""Text to be escaped, or `Markup`, or any nesting of them; None, True and False are left out."""


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element; ``class_`` means class, ``data_x`` data-x; None and False leave an attribute out."""
    opened = "".join(
        f" {name.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(clean(str(value)))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _WITHOUT_END and not children:
        return Markup(f"<{tag}{opened}/>")
    inner = "".join(
        each if isinstance(each, Markup) else escape(clean(each), quote=False) for each in _flat(children)
    )
    return Markup(f"<{tag}{opened}>{inner}</{tag}>")


def _flat(children: Iterable[Child]) -> Iterator[str]:
    """Return all texts among children."""
    for child in children:
        if child is None or isinstance(child, bool):
            continue
        if isinstance(child, str):
            yield child
        elif isinstance(child, int | float):
            yield str(child)
        else:
            yield from _flat(child)


def clean(text: str) -> str:
    """Replace characters that HTML and XML cannot hold: controls, and halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(each) else each for each in text)


def _is_control(character: str) -> bool:
    """Return whether HTML cannot hold a character."""
    code = ord(character)
    return (
        (code < 0x20 and character not in "\t\n")
        or 0x7F <= code < 0xA0
        or 0xD800 <= code < 0xE000
        or (code & 0xFFFE) == 0xFFFE
    )
