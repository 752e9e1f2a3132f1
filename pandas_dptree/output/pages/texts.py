"""All fixed words of pages: a language is one more column of this table.

A text may hold places such as ``{name}``, which are filled in; each language must have the same ones. Texts
are plain, never HTML. ``sign.`` are the signs of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pandas_dptree.errors import ArgumentError, listed, quote

__all__ = ["ENGLISH", "LANGUAGES", "Texts", "isolated", "texts_of"]


class Texts:
    """The words of one language."""

    def __init__(self, language: str, words: Mapping[str, str]) -> None:
        self.language = language
        self._words = words

    def __getitem__(self, key: str) -> str:
        return self._words[key]

    def get(self, key: str) -> str | None:
        """Return a text, None if there is none."""
        return self._words.get(key)

    def fill(self, key: str, **values: Any) -> str:
        """Return a text with its places filled; ``key.one`` if there is such a text and ``n`` is 1."""
        if str(values.get("n")) == "1" and f"{key}.one" in self._words:
            key = f"{key}.one"
        return self._words[key].format(**values)

    def joined(self, words: list[str]) -> str:
        """Join words: a, b and c."""
        if len(words) < 2:
            return "".join(words)
        return self.fill("list.and", first=", ".join(words[:-1]), last=words[-1])


def isolated(name: object) -> str:
    """Set a name within a sentence apart, so that its direction of writing does not reach the sentence."""
    text = str(name)
    return text if text.isascii() else f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"


def texts_of(language: str) -> Texts:
    """Return the words of a language."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise ArgumentError(
            "language",
            f"is not a language of pages: {quote(language)}.",
            hint=f"choose {listed(LANGUAGES)}.",
        )
    return Texts(language, LANGUAGES[language])


_ENGLISH: Final[Mapping[str, str]] = {
    # Signs of numbers, and lists.
    "sign.thousands": ",",
    "sign.decimal": ".",
    "sign.minus": "−",
    "numbers.interval": "{lower} to {upper}",
    "list.and": "{first} and {last}",
    # The head of the page.
    "page.skip": "Skip to the tables",
    "page.kicker": "Statistics with noise",
    "page.contents": "Sections",
    "page.title": "{columns}, by {levels}",
    "page.table": "Table",
    "page.made": "Made with pandas_dptree {version}.",
    "page.origin": "This page repeats what its tables say of themselves, which proves nothing.",
    "lede.records": "records",
    "lede.units": "Distinct {unit}",
    "lede.count": "{value} {name} ({error}) in all",
    "lede.count.plain": "{value} {name} in all",
    "lede.total": "{name}: {value} ({error}) in all",
    "lede.total.plain": "{name}: {value} in all",
    "lede.mean": "{name}: {value} ({error}) over all",
    "lede.mean.plain": "{name}: {value} over all",
    "lede.whole": "{total}.",
    "lede.both": "{total}, by {levels}.",
    "lede.levels": "By {levels}.",
    "lede.level": "{name} ({size})",
    "lede.noise": "Random noise was added to the numbers on purpose, so that nobody can tell from them with "
    "confidence whether any one of those protected is in the records.",
    "lede.noise.replace": "Random noise was added to the numbers on purpose, so that nobody can tell from "
    "them with confidence which records any one of those protected has.",
    "lede.drawn": "The numbers were drawn at random on purpose, so that nobody can tell from them with "
    "confidence whether any one of those protected is in the records.",
    "lede.drawn.replace": "The numbers were drawn at random on purpose, so that nobody can tell from "
    "them with confidence which records any one of those protected has.",
    "fact.protected": "Protected",
    "fact.protected.unit": "each {unit}, with at most {n} rows",
    "fact.protected.unit.one": "each {unit}, with one row",
    "fact.protected.distinct": "each {unit}, with all rows",
    "fact.protected.rows": "each single record",
    "fact.protected.users": "everyone with at most {n} records",
    "fact.protected.unknown": "unknown",
    "fact.protected.nobody": "nobody",
    "fact.errors": "Numbers after ±",
    "fact.errors.interval": "{share} margin of the noise",
    "fact.errors.ends": "{share} intervals",
    "fact.errors.std_error": "one standard error of the noise",
    "fact.errors.bound": "a bound on the noise",
    "fact.errors.none": "",
    "fact.loss": "Privacy loss",
    "fact.loss.of": "{table}: {loss}",
    "fact.loss.differ": "of several kinds, which do not add up: see below",
    "fact.loss.total": "{loss} for all tables together",
    "fact.account": "{loss}, of the account “{account}”",
    "fact.account.left": "{loss}, of the account “{account}”, which has {left} left",
    "fact.account.of": "{left} of {cap}",
    "fact.download": "Download",
    "fact.download.table": "{name} (CSV)",
    # What the script of interactive pages shows.
    "script.find": "Find",
    "script.fold": "Fold all",
    "script.unfold": "Unfold all",
    "script.one": "{n} row",
    "script.many": "{n} rows",
    # The icicle.
    "icicle.overview": "Overview",
    "icicle.heading": "{name} at a glance",
    "icicle.title": "{name} by {levels}: boxes as high as the numbers",
    "icicle.caption": "From left to right: {levels}. Each box is as high as its number; the paler it is, the "
    "larger the error is beside it. Hatched boxes are several too small to draw.",
    "icicle.smaller": "{n} smaller",
    "icicle.all": "all {n}",
    # Heat maps.
    "cross.heading": "{table} by {axes}",
    "cross.caption": "{name} by {rows}, with a column for each {columns}",
    "cross.caption.rows": "{name} by {rows}",
    "heatmap.heading": "{table} by {above} and {below}",
    "heatmap.caption": "{name}: a line for each {above}, a column for each {below}",
    "heatmap.told": "The stronger the colour, the larger the number, by its square root.",
    "heatmap.hatched": "Hatched numbers are uncertain: class {classes}.",
    "heatmap.all": "All",
    # Levels.
    "levels.lost": "This page leaves out {levels}, for which the table is too long.",
    "levels.lost.level": "{name} ({size} rows)",
    "levels.bars": "Bars start at zero and share one scale in this section; the whisker is the interval "
    "that ± describes. Where none can be seen, it is narrower than its line.",
    "levels.ends": "Where an interval is not symmetric around the number, or was cut to what is possible, "
    "its ends are given instead of ±.",
    "levels.missing": "A dash stands where too few records were counted to tell a number from noise.",
    "levels.uncertain": "Of {n} rows, {counts}: their numbers say little more than that they are small.",
    "levels.uncertain.class": "{n} are of class {letter}",
    "levels.ended": "Without rows here: {names}.",
    "levels.others": "{first} and {n} others",
    "levels.others.one": "{first} and one other",
    "levels.heading": "{table} by {level}",
    "levels.caption": "{columns} by {level}",
    "levels.table": "Table: {name}",
    "levels.group.size": "{n} rows",
    "levels.group.size.one": "1 row",
    "levels.errors": "Each number {error}.",
    "head.error.interval": "± {share}",
    "head.error.ends": "{share} interval",
    "head.error.std_error": "± std. error",
    "head.error.bound": "± bound",
    "head.error.none": "",
    "head.class": "Class",
    "level.total": "Total",
    "level.total.inline": "total",
    "column.count": "Count",
    "column.count.inline": "count",
    "remainder": "(other)",
    "key.empty": "(empty)",
    # Distributions and quantiles.
    "distribution.axis": "How many records have {name} below each value",
    "distribution.picture": "Cumulative counts of {name}; the tables beside have the numbers",
    "distribution.band": "The band holds all of these counts at once in {share} of such releases.",
    "distribution.thin": "It is thinner than the line here: at most {error}.",
    "distribution.quantiles": "{name}: shares below",
    "distribution.part": "Of all records",
    "distribution.ranges": "{name}: counts of ranges",
    "distribution.total": "{group}: {n} records.",
    "range.ends": "{lower} to below {upper}",
    "quantile": "{share} below",
    "quantile.least": "smallest",
    "quantile.median": "median",
    "quantile.most": "largest",
    "quantiles.heading": "{name} by {level}",
    "quantiles.hours": "{name} (hours)",
    "quantiles.told": "The intervals of all quantiles of a group hold at once. They end at the edges of the "
    "bins in which values were counted.",
    "quantiles.told.drawn": "The intervals of all quantiles of a group hold at once. They are read from "
    "noisy counts in bins, not from the numbers that were drawn.",
    "quantiles.told.none": "How far these numbers may be from the true ones is not stated. The fewer records "
    "there are, and the further their values are apart, the further it is.",
    # Tables that show large nodes only.
    "keys.other": "“(other)” is what the row above holds beside the rows shown below it: what few share, and "
    "records without a key. It is no key of the records.",
    "keys.missing": "What is not shown here is not zero. A row appears only if its count with noise is "
    "large, for a rare key could tell who is in the records.",
    "keys.level": "{level}: shown if the count with noise is above {above}.",
    "keys.level.certain": "{level}: shown if the count with noise is above {above}, and certainly if the "
    "true count is above {most}.",
    "errors.bound.certain": "± is a bound on the error: the true count is certainly that close. Of “(other)” "
    "it is wide, as it adds up what all missing rows could hold.",
    "errors.bound.all": "± is a bound on the error. It holds for all rows at once in at least {share} "
    "of all releases.",
    # Derived numbers.
    "proportions.heading": "Shares: {section}",
    "proportions.told": "Each share is a part of {of}. Shares have errors of their own, because a number and "
    "what it is a part of share their noise.",
    "proportions.parent": "what is above it",
    "proportions.missing": "A dash stands where too little was counted in the whole to tell a share.",
    "column.share": "Share",
    "column.share.inline": "share",
    "change.heading": "{table}: change since {before}",
    "change.entry": "Change",
    "change.caption": "{table}, {before} and {now}",
    "change.told": "Two releases with independent noise. Filled dots are beyond it: {beyond} of the {n} "
    "changes of the table, "
    "of which noise alone would show about {chance} if nothing had changed. Judged all together (Holm): "
    "{holm}.",
    "change.leaves_out": "The errors leave out chance in the world, which changes numbers "
    "from one time to the next by itself, and records beyond the bounds of each release.",
    "change.few": "too few",
    "change.head.change": "Change",
    "change.head.percent": "In per cent",
    "change.head.interval": "{share} interval",
    "change.head.beyond": "Beyond noise?",
    "change.yes": "yes",
    "change.no": "no",
    "top.heading": "{table}: the largest",
    "top.heading.level": "{table}: the largest by {level}",
    "top.told": "All intervals hold at once with {share}, for each of the {n} that competed. Where intervals "
    "overlap, the true order may be another one.",
    "top.rank": "Rank",
    "combine.heading": "{table}: areas",
    "combine.told": "Sums of rows of the table, each with its own error.",
    "combine.area": "Area",
    # Warnings at the top.
    "warning.test": "This table is a test. Its noise came from a generator that can be repeated: it "
    "protects nobody.",
    "warning.useless": "The privacy loss of this table is so large that it protects nobody.",
    "warning.altered.selected": "This is not the whole released table: rows were selected or moved; their "
    "values are those of the release.",
    "warning.altered.changed": "This is not the whole released table: values were changed after the release.",
    "warning.altered.either": "This is not the whole released table: rows or columns were selected, moved "
    "or added, or values were changed after the release.",
    "of.table": "{name}: {words}",
    # Undercount.
    "undercount.count": "Counts at most {n} rows of each {unit}: {consequence}.",
    "undercount.count.one": "Counts at most 1 row of each {unit}: {consequence}.",
    "undercount.sum": "Adds up at most {n} rows of each {unit}: {consequence}.",
    "undercount.sum.one": "Adds up at most 1 row of each {unit}: {consequence}.",
    "undercount.mean": "Averages at most {n} rows of each {unit}: {consequence}.",
    "undercount.mean.one": "Averages at most 1 row of each {unit}: {consequence}.",
    "undercount.quantile": "Uses at most {n} rows of each {unit}: {consequence}.",
    "undercount.quantile.one": "Uses at most 1 row of each {unit}: {consequence}.",
    "undercount.several": "Uses at most {n} rows of each {unit}: {consequence}.",
    "undercount.several.one": "Uses at most 1 row of each {unit}: {consequence}.",
    "undercount.differ": "real totals can differ",
    "undercount.larger": "real totals can be larger",
    "undercount.higher": "real totals can be higher",
    "undercount.means": "means of all rows can differ",
    "undercount.quantiles": "quantiles of all rows can differ",
    "capped": "Of these rows, at most {caps}.",
    "capped.level": "{n} in each {level}",
    "capped.leaf": "node of the deepest level",
    "capped.pairs": "So each {leaf} counts each {unit} at most once, and the levels above count pairs of a "
    "{unit} and a {leaf}.",
    "distinct": "Counts distinct {unit}: each once in every node, in at most {levels}. So numbers do not add "
    "up: a node has at least as many as its largest part, and at most the sum of its parts. Nobody is "
    "missing from the total; other nodes may lack some of those who are in more.",
    "distinct.column": "“{name}” counts distinct {unit}: each once in every node, in at most {levels}. So "
    "its numbers do not add up: a node has at least as many as its largest part, and at most the sum of its "
    "parts. Nobody is missing from its total; other nodes may lack some of those who are in more.",
    "distinct.level": "{n} of the level {level}",
    # Protection.
    "protection.title": "How this table is protected",
    "protection.title.several": "How these tables are protected",
    "protection.releases": "Releases on this page",
    "protection.head.table": "Table",
    "protection.head.protects": "Protects",
    "protection.head.loss": "Privacy loss",
    "protection.head.ledger": "Ledger",
    "protection.entry": "entry {entry} of “{account}”",
    "protection.none": "none",
    "protection.of": "What protects {name}",
    "protection.digests": "Digests, by which the release can be checked",
    "protection.digest.plan": "Plan of {name}",
    "protection.digest.charge": "Charge of {name}, entry {entry} of the ledger",
    "protection.digest.values": "Values of {name}",
    "protection.check": "A plan fixed the noise before any record was read; its digest is a SHA-256. "
    "Whoever has the plan and the table can check them:",
    "protection.together": "What an attacker gains is stated for each table alone. From all tables of this "
    "page together they may gain more: the losses of releases about the same people add up.",
    "protection.unknown": "It is unknown how this table was made and what protects it: the table does not "
    "say.",
    "protection.loss": "Protection: {loss}.",
    "protection.loss.useless": "Protection: {loss}, which protects nobody.",
    "protection.loss.test": "Protection: none. If the noise had been secret, it would be {loss}.",
    "protection.loss.test.useless": "Protection: none. If the noise had been secret, it would be {loss}, "
    "which protects nobody.",
    "loss.rho.delta": "approximate zero-concentrated differential privacy with ρ = {rho} and δ = {delta}",
    "loss.rho": "zero-concentrated differential privacy with ρ = {rho}",
    "loss.unknown": "differential privacy, with a loss that is unknown",
    "loss.epsilon.delta": "approximate differential privacy with ε = {epsilon} and δ = {delta}",
    "loss.epsilon": "pure differential privacy with ε = {epsilon}",
    "unit.unknown": "Who is protected: unknown.",
    "unit.column": "Who is protected: everyone named in the column “{unit}”, with all of their records. "
    "At most {n} records of each were counted, chosen at random.",
    "unit.column.one": "Who is protected: everyone named in the column “{unit}”, with all of their records. "
    "At most 1 record of each was counted, chosen at random.",
    "unit.column.unknown": "Who is protected: everyone named in the column “{unit}”, with all of their "
    "records. At most an unknown number of records of each were counted, chosen at random.",
    "unit.distinct": "Who is protected: everyone named in the column “{unit}”, with all of their records.",
    "unit.rows": "Who is protected: each single record. Anyone with several records is protected less.",
    "unit.users": "Who is protected: everyone who has at most {n} records.",
    "hidden.add_remove": "What is hidden: whether one of them is in the data at all (neighbours by addition "
    "or removal).",
    "hidden.replace": "What is hidden: what the records of one of them are, but not how many of them there "
    "are (neighbours by replacement).",
    "hidden.unknown": "What is hidden: unknown ({neighbors}).",
    "risk": "What an attacker gains who knows everything else, and guesses {guess}: falsely accusing 5 of "
    "100, they find at most {found} of 100.",
    "risk.suspicion": "What an attacker gains who knows everything else, and guesses {guess}: falsely "
    "accusing 5 of 100, they find at most {found} of 100; a suspicion of 1 % becomes at most {suspicion} %.",
    "risk.add_remove": "whether one of those protected is in the data",
    "risk.replace": "which records one of those protected has",
    "rows.private.some": "Which rows the table has: by {names}, protected like its values; for the other "
    "keys, not protected. {source}",
    "rows.private": "Which rows the table has: protected like its values.",
    "rows.public": "Which rows the table has: not protected. {source}",
    "source.given": "The publisher provided the list of them, as public.",
    "source.released": "They are the keys of an earlier released table, whose privacy loss is not included.",
    "source.categories": "They are the categories of the keys, which the publisher declared public.",
    "source.observed": "They are the keys in the records, which the publisher declared public.",
    "source.unknown": "The publisher declared the list of them public.",
    "clipped": "Values of “{name}” were clipped to between {lower} and {upper}, and rounded.",
    "clipped.bins": "Values of “{name}” were clipped to between {lower} and {upper}, and counted in {n} "
    "bins.",
    "known": "Public beforehand, and shown without noise: {levels}.",
    "known.column": "Public beforehand, and shown without noise, of “{name}”: {levels}.",
    "known.level": "{n} of the level {level}",
    "drawn.grid": "Drawn at random, {mechanism}, from a public grid in steps of {granularity}: values are "
    "the more likely, the fewer records lie between them and the quantile.",
    "drawn.middles": "Drawn at random, {mechanism}, from the middles of {n} bins: values are the more "
    "likely, the fewer records lie between them and the quantile.",
    "drawn.exponential": "by the exponential mechanism",
    "drawn.permute_and_flip": "by permute-and-flip",
    "noise": "Noise: {noise}.",
    "noise.trees": "Noise of the counts in bins, from which all other numbers are read: {noise}.",
    "noise.laplace": "discrete Laplace",
    "noise.gaussian": "discrete Gaussian",
    "noise.truncated_laplace": "truncated discrete Laplace; shown are nodes whose noisy count is large",
    "noise.gaussian_thresholds": "discrete Gaussian; shown are nodes whose noisy count is large and whose "
    "parent is shown",
    "noise.multiplicative": "truncated discrete Laplace, before each comparison with a threshold",
    "secrecy.unknown": "Whether the noise was secret: unknown. This description is taken from the plan, not "
    "the table.",
    "charge": "Charged to the account “{account}”, which limits the loss of all its releases together: "
    "entry {entry} of the ledger.",
    "charge.part": "Charged to the account “{account}”, part “{part}”, which limits the loss of all its "
    "releases together: entry {entry} of the ledger.",
    "guarantee": "Released with pandas_dptree {version}. The guarantee holds for the whole table at once, "
    "and for all that is computed from it. Other releases of the same records add to the loss.",
    "version.unknown": "(version unknown)",
    # The page of a ledger.
    "ledger.title": "Privacy budgets, and what was spent",
    "ledger.kicker": "Ledger",
    "ledger.origin": "It repeats what the ledger says, which proves nothing by itself.",
    "ledger.account": "Account “{{}}”",
    "ledger.useless": "The cap of this account is so large that it protects nobody.",
    "ledger.parts": "Parts",
    "ledger.releases": "Releases",
    "ledger.digests": "Digests (SHA-256)",
    "ledger.digests.caption": "Digests of each release",
    "ledger.nothing": "Nothing was charged so far.",
    "ledger.again": " (again, after entry {entry})",
    "ledger.unknown": "no output is known",
    "ledger.all": "all",
    "ledger.head.part": "part",
    "ledger.head.used": "used",
    "ledger.head.charges": "charges",
    "ledger.head.spent": "spent on this part alone",
    "ledger.head.left": "left",
    "ledger.head.entry": "entry",
    "ledger.head.time": "requested (UTC)",
    "ledger.head.note": "note",
    "ledger.head.released": "released",
    "ledger.head.epsilon": "ε",
    "ledger.head.rho": "ρ",
    "ledger.head.delta": "δ",
    "ledger.head.by": "by",
    "ledger.head.plan": "plan",
    "ledger.head.table": "table",
    "ledger.head.ledger": "entry of the ledger",
    "ledger.check": "How this can be checked",
    "ledger.check.entry": "Check",
    "ledger.check.head": "The ledger {{}} has {n} entries. The digest of the last one stands for all:",
    "ledger.check.how": "Keep it where those who run the ledger cannot write. With it, {{}} finds "
    "whether an entry that this page lists was changed or removed later.",
    # How to read the errors.
    "errors.title": "How to read the errors",
    "errors.nav": "Errors",
    "protection.nav": "Protection",
    "errors.interval": "“{value} {error}” means: what was counted lies between {lower} and {upper}. Such a "
    "statement is true in at least about {share} of all releases, for each interval separately.",
    "errors.interval.plain": "An interval holds the true value of what was counted in at least about "
    "{share} of all releases. This applies to each interval separately.",
    "errors.share.unknown": "a stated share",
    "errors.cut": "Intervals are cut to what is possible, so they may be a single number; they still hold "
    "as often as stated.",
    "errors.std_error": "± is one standard error: that of the unbiased estimate, before anything made it "
    "whole or non-negative. The true value is within twice that in about 95 of 100 releases.",
    "errors.std_error.shown": "± is one standard error of the noise. It is missing (–) where none was "
    "measured.",
    "errors.bound": "± is a bound on the error. For a single row it holds with a probability of {held}.",
    "errors.bound.nearly": "± is a bound on the error. For a single row it holds nearly always.",
    "errors.means": "The error of a mean is a first-order approximation, for nodes with many records.",
    "errors.missing": "Where a mean is missing (–), there are too few records to distinguish it from noise.",
    "errors.only": "Noise is the only error that ± describes. Mistakes in the records are not part of it, "
    "and neither is what was not counted.",
    "errors.quantiles": "Mistakes in the records are not part of what an interval holds, and neither is what "
    "was not counted.",
    "errors.sums": "The errors of numbers that belong together were adjusted together. So the error of a sum "
    "is not the sum of the errors.",
    "errors.distinct": "Numbers of distinct {unit} do not add up: whoever is in several rows is counted in "
    "each. How many there are in several rows together is the number of what is above them, not their sum.",
    "errors.zero": "A small number with a large error is still information: “0 ± 20” says that there were "
    "hardly more than 20.",
    "classes.caption": "Classes of reliability",
    "classes.source.statcan": "as in Statistics Canada’s business surveys",
    "classes.source.abs": "as the Australian Bureau of Statistics marks estimates",
    "classes.blank": "Numbers of class {classes} are not shown, and their intervals are.",
    "classes.head.ratio": "Standard error ÷ number",
    "classes.head.meaning": "Meaning",
    "classes.below": "below {most}",
    "classes.between": "{least} to {most}",
    "classes.above": "{least} or more, or the number is 0",
    "class.=": "exact: known beforehand",
    "class.*": "use with caution",
    "class.**": "too unreliable for most uses; the interval is still valid",
    "class.A": "excellent",
    "class.B": "very good",
    "class.C": "good",
    "class.D": "acceptable",
    "class.E": "use with caution",
    "class.F": "too unreliable for most uses; the interval is still valid",
}

LANGUAGES: Final[dict[str, Mapping[str, str]]] = {"en": _ENGLISH}
"""The words of each language, by its tag (BCP 47)."""

ENGLISH: Final = Texts("en", _ENGLISH)
