"""The section that says what protects the tables of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Section, Setting, scrolled
from pandas_dptree.output.pages.texts import Texts, isolated
from pandas_dptree.output.protection import is_repeatable, statement
from pandas_dptree.output.table_digest import stated_digest

__all__ = ["account_of", "loss_in_signs", "protected", "protection_section"]


def protection_section(page: Setting) -> Section:
    """Say what protects each table, and by which digests this can be checked."""
    texts, several = page.texts, len(page.tables) > 1
    told: dict[tuple[str, ...], list[str]] = {}
    for name, provenance in page.provenances.items():
        told.setdefault(tuple(statement(provenance, texts)), []).append(page.table_name(name))
    lists = [
        (names, element("ul", [element("li", sentence) for sentence in sentences]))
        for sentences, names in told.items()
    ]
    together = element("p", texts["protection.together"])
    parts: list[Markup | None] = [_releases(page), together] if several else []
    if len(lists) == 1:
        parts.append(lists[0][1])
    else:
        parts += [
            element(
                "details",
                element("summary", texts.fill("protection.of", name=texts.joined([*map(isolated, names)]))),
                each,
                open=True,
            )
            for names, each in lists
        ]
    parts.append(_digests(page))
    heading = texts["protection.title.several" if several else "protection.title"]
    return Section(heading, Markup("".join(filter(None, parts))), entry=texts["protection.nav"])


def protected(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Say in short who is protected."""
    if is_repeatable(provenance):
        return texts["fact.protected.nobody"]
    if "privacy_unit" not in provenance:
        return texts["fact.protected.unknown"]
    unit, most = provenance["privacy_unit"], provenance.get("max_contributions")
    if unit is not None:
        return texts.fill("fact.protected.unit", unit=isolated(unit), n=most)
    return texts["fact.protected.rows"] if most == 1 else texts.fill("fact.protected.users", n=most)


def loss_in_signs(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Return a privacy loss as short as possible."""
    signs = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
    stated = [
        f"{sign} = {isolated(provenance[name])}" for name, sign in signs.items() if provenance.get(name)
    ]
    return ", ".join(stated) or texts["fact.protected.unknown"]


def account_of(provenance: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the charge that stands for a release, None if there is none."""
    charge = provenance.get("ledger")
    return charge if isinstance(charge, Mapping) else None


def _releases(page: Setting) -> Markup:
    """List the releases of several tables."""
    texts = page.texts
    heads = [
        element("th", texts[f"protection.head.{name}"], scope="col")
        for name in ("table", "protects", "loss", "ledger")
    ]
    rows = []
    for name, provenance in page.provenances.items():
        charge = account_of(provenance)
        entry = texts["protection.none"]
        if charge is not None:
            told = {
                key: isolated(charge.get(of)) for key, of in (("entry", "charge"), ("account", "account"))
            }
            entry = texts.fill("protection.entry", **told)
        cells = (protected(provenance, texts), loss_in_signs(provenance, texts), entry)
        head = element("th", page.table_name(name), scope="row")
        rows.append(element("tr", head, [element("td", cell) for cell in cells]))
    caption = texts["protection.releases"]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", heads)),
        element("tbody", rows),
        class_="key",
    )
    return scrolled(table, caption, texts, keep=True)


def _digests(page: Setting) -> Markup | None:
    """List the digests of plans, charges and values, folded away."""
    texts = page.texts
    found = []
    for name, provenance in page.provenances.items():
        charge = account_of(provenance) or {}
        shown = isolated(page.table_name(name))
        entry = isolated(charge.get("charge"))
        digests = {
            texts.fill("protection.digest.plan", name=shown): provenance.get("digest"),
            texts.fill("protection.digest.charge", name=shown, entry=entry): charge.get("digest"),
            texts.fill("protection.digest.values", name=shown): stated_digest(page.tables[name]),
        }
        found += [
            [element("dt", what), element("dd", str(digest), class_="mono")]
            for what, digest in digests.items()
            if digest
        ]
    if not found:
        return None
    check = element("code", "dptree verify plan.json table.csv", class_="mono")
    return element(
        "details",
        element("summary", texts["protection.digests"]),
        element("p", texts["protection.check"], " ", check),
        element("dl", found, class_="digests"),
    )
