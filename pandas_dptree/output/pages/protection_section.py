"""The section that says what protects the tables of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.setting import Section, Setting, scrolled
from pandas_dptree.output.pages.texts import Texts, isolated
from pandas_dptree.output.protection import counts_units_alone, is_repeatable, stated_loss, statement
from pandas_dptree.output.table_digest import Keeper, stated_digest

__all__ = ["account_of", "losses_in_short", "protected", "protection_section"]

_FEW: Final = 3
"""The tables up to which the head of a page lists losses that do not add up."""

_SIGNS: Final = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}


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
    if counts_units_alone(provenance):
        return texts.fill("fact.protected.distinct", unit=isolated(unit))
    if unit is not None:
        return texts.fill("fact.protected.unit", unit=isolated(unit), n=most)
    return texts["fact.protected.rows"] if most == 1 else texts.fill("fact.protected.users", n=most)


def losses_in_short(page: Setting, ledger: Keeper | None) -> str:
    """Say what the tables spend together, of which account, and what the ledger has left of it."""
    texts, stated = page.texts, list(page.provenances.values())
    if len(stated) == 1:
        loss = _loss_in_signs(stated[0], texts)
    elif total := _total_loss(stated):
        loss = texts.fill("fact.loss.total", loss=_loss_in_signs(total, texts))
    elif len(stated) > _FEW:
        return texts["fact.loss.differ"]
    else:
        return "; ".join(
            texts.fill(
                "fact.loss.of",
                table=isolated(page.table_name(name)),
                loss=_of_account(_loss_in_signs(each, texts), [each], ledger, texts),
            )
            for name, each in page.provenances.items()
        )
    return _of_account(loss, stated, ledger, texts)


def _total_loss(stated: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Return the sum of losses, rounded up; None unless all protect the same in one currency.

    A release that several tables show counts once if its charge says so.
    """
    protections, releases = set(), {}
    for number, each in enumerate(stated):
        loss, charge = stated_loss(each), account_of(each)
        if loss is None or "privacy_unit" not in each or is_repeatable(each):
            return None
        most = each.get("max_contributions") if each["privacy_unit"] is None else None
        protections.add(repr((loss.rho is None, each.get("neighbors"), each["privacy_unit"], most)))
        digest = (charge or {}).get("digest")
        releases[repr((digest or number, each.get("digest"), loss))] = loss.to_dict()
    if len(protections) != 1:
        return None
    return {
        name: _short(sum(Decimal(repr(each.get(name, 0.0))) for each in releases.values()), ROUND_CEILING)
        for name in _SIGNS
    }


def _short(number: Decimal | int, rounding: str) -> float:
    """Round to six digits."""
    return float(Context(prec=6, rounding=rounding).plus(Decimal(number)))


def _of_account(loss: str, stated: Sequence[Mapping[str, Any]], ledger: Keeper | None, texts: Texts) -> str:
    """Name the account of a loss, if it is one, and what is left of it."""
    charges = [account_of(each) or {} for each in stated]
    account, part = charges[0].get("account"), charges[0].get("part")
    if account is None or any((each.get("account"), each.get("part")) != (account, part) for each in charges):
        return loss
    named = {"loss": loss, "account": isolated(account)}
    if not isinstance(ledger, Keeper) or not isinstance(account, str) or account not in ledger:
        return texts.fill("fact.account", **named)
    of = ledger[account] if part is None else ledger[account].part(part)
    left, cap = of.remaining.to_dict(), of.cap.to_dict()
    parts = [
        texts.fill(
            "fact.account.of",
            left=f"{_short(Decimal(repr(left.get(name, 0.0))), ROUND_FLOOR):g}",
            cap=_loss_in_signs({name: most}, texts),
        )
        for name, most in cap.items()
        if most
    ]
    return texts.fill("fact.account.left", **named, left=texts.joined(parts))


def _loss_in_signs(provenance: Mapping[str, Any], texts: Texts) -> str:
    """Return a privacy loss as short as possible."""
    stated = [
        f"{sign} = {isolated(provenance[name])}" for name, sign in _SIGNS.items() if provenance.get(name)
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
        cells = (protected(provenance, texts), _loss_in_signs(provenance, texts), entry)
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
