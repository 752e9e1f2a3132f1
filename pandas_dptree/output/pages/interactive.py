"""Search, sorting and folding for pages: a script of our own, and the policy that allows this one alone."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from pandas_dptree.output.pages.texts import Texts

__all__ = ["packaged", "policy", "script_words"]


@cache
def packaged(name: str) -> str:
    """Read a file that is part of the package."""
    return (files("pandas_dptree.output.pages") / name).read_text(encoding="utf-8")


def policy(*, interactive: bool) -> str:
    """Return the content security policy of a page: its own styles, and at most our script, by its hash."""
    allowed = "default-src 'none'; style-src 'unsafe-inline'"
    if not interactive:
        return allowed
    digest = b64encode(sha256(packaged("page.js").encode()).digest()).decode()
    return f"{allowed}; script-src 'sha256-{digest}'"


def script_words(texts: Texts) -> str:
    """Return the words that the script shows or reads, for the attribute ``data-words`` of the body."""
    words = {
        **{name: texts[f"script.{name}"] for name in ("find", "fold", "unfold", "one", "many")},
        **{name: texts[f"sign.{name}"] for name in ("thousands", "decimal", "minus")},
    }
    return json.dumps(words, ensure_ascii=False)
