"""Search, sorting and folding for pages: a script of our own, and the policy that allows this one alone."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.texts import Texts

__all__ = ["POLICY", "interactive_policy", "interactive_style", "script", "script_words"]

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The content security policy of a page: nothing but its own styles."""


def interactive_policy() -> str:
    """Return the policy that also allows the script of interactive pages, by its hash, and no other."""
    digest = b64encode(sha256(_read("page.js").encode()).digest()).decode()
    return f"{POLICY}; script-src 'sha256-{digest}'"


def script() -> Markup:
    """Return the script, to stand at the end of the body."""
    return element("script", Markup(_read("page.js")))


def interactive_style() -> str:
    """Return the styles of what the script adds."""
    return _read("interactive.css")


def script_words(texts: Texts) -> str:
    """Return the words that the script shows or reads, for the attribute ``data-words`` of the body."""
    words = {
        **{name: texts[f"script.{name}"] for name in ("find", "fold", "unfold", "one", "many")},
        **{name: texts[f"sign.{name}"] for name in ("thousands", "decimal", "minus")},
    }
    return json.dumps(words, ensure_ascii=False)


@cache
def _read(name: str) -> str:
    """Return the text of a file beside this module."""
    return (files("pandas_dptree.output.pages") / name).read_text("utf-8")
