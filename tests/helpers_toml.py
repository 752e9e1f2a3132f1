"""Three programmes as texts, and the files that they need."""
# ruff: noqa: E501

import pandas as pd

import pandas_dptree as dpt

REPORT = """\
# Visits to clinics, each month. Look first: dptree run report.toml --for 2025-03 --dry-run
format = "dptree 1"
title = "Visits to clinics, {month}"
each = "month"                          # --for 2025-03 sets {month}; --due takes all months not yet released

[sources.visits]                        # secret: read once, after everything else was checked
files = "visits/{month}.parquet"        # or files = "visits/*.parquet" with during = { date = "{month}" }
privacy_unit = "person"
max_contributions = 2

[hierarchies.place]                     # public
by = ["region", "district", "clinic"]
domain = "clinics.csv"

[budget]                                # of one month
ledger = "budget.sqlite"                # dptree ledger create budget.sqlite --account patients --rho 0.24 ...
account = "patients"
rho = 0.02                              # 12 months fit into the account's 0.24
note = "{month}"                        # the same plans with the same note are released once

[tables.visits]
verb = "counts"
by = "place"
share = 0.5                             # of the budget, or target = { district = 25 }

[tables.care]
verb = "means"
by = "place"
down_to = "district"
columns = { age = { bounds = [0, 100] }, cost = { bounds = [0, 500] } }
share = 0.35

[tables.costs]
verb = "distribution"
column = "cost"
bounds = [0, 200]
bins = 100
share = 0.15

[outputs]
folder = "published/{month}"           # and published/{month}/.released, from which a restart goes on
write = ["parquet", "csv", "xlsx", "html"]

[page]                                  # everything from here on is computed from released tables, at no cost
show = [
    { table = "visits", as = "icicle" },
    { tables = ["visits", "care"] },
    { table = "visits", as = "change" },
    { table = "costs" },
]
combine = { "North coast" = [["Brenvale"], ["Estholm", "Outer Islands"]] }
"""

WEBLOGS = """\
# Visits to pages of three sites. Which pages exist is not public: only those that many visitors share are shown.
format = "dptree 1"
title = "Web visits, {week}"
each = "week"                           # ISO weeks: 2025-W14

[sources.logs]
files = "logs/**/*.parquet"             # larger than memory, so read by an engine
engine = "polars"                       # polars, duckdb, pyarrow, dask, spark; without it: by the kind of file
during = { time = "{week}" }            # only the row groups of that week are read
privacy_unit = "visitor"
max_contributions = 20

[hierarchies.page]
by = ["site", "path"]
domain = ["www", "shop", "docs"]        # a list, since "site" is its only public key
private_keys = ["path"]                 # needs a delta; a path that is not shown is not zero

[hierarchies.when]
calendar = { column = "time", levels = ["iso_week", "day", "hour"], timezone = "Europe/Berlin" }
during = "{week}"

[budget]
ledger = "budget.sqlite"
account = "visitors"
epsilon = 1.0
delta = 1e-7
note = "{week}"

[tables.pages]
verb = "counts"
by = "page"
share = 0.7

[tables.hours]
verb = "counts"
by = "when"
down_to = "hour"
share = 0.3

[outputs]
folder = "published/{week}"
write = ["parquet", "html"]

[page]
show = [{ table = "pages" }, { table = "hours", as = "levels" }]
interactive = true                      # search and sort in plain JavaScript; without it the page has no script
"""

CENSUS = """\
# Persons by place, age and sex, with all margins. One release, so there is no "each" and no placeholder.
format = "dptree 1"
title = "Population 2025 by place, age and sex"

[sources.persons]
database = "census.duckdb"
table = "persons"
privacy_unit = "person"
max_contributions = 1
neighbors = "replace"

[hierarchies.place]
by = ["state", "county", "tract"]
domain = "places.parquet"
structural_zeros = "uninhabited"
labels = { state = "state_names.csv" }  # codes are released, names are shown

[hierarchies.age]
cut = { column = "age", levels = { band = [0, 18, 65, 120], year = 1 } }

[hierarchies.sex]
by = ["sex"]
domain = ["F", "M"]

[budget]
rho = 0.1                               # without a ledger nothing adds up over runs; the page says so

[tables.persons]
verb = "counts"
by = { place = "place", age = "age", sex = "sex" }          # a mapping crosses, a list nests
margins = [{ place = "tract" }, { place = "county", age = "band", sex = "sex" }, { place = "state", age = "year", sex = "sex" }]
known = "state_totals.csv"
consistency = "integer"
confidence = 0.90

[outputs]
folder = "published"
write = ["zarr", "xlsx", "html"]

[page]
show = [
    { table = "persons", margin = { place = "state", age = "band" } },
    { table = "persons", margin = { place = "state", sex = "sex" }, as = "proportions" },
    { table = "persons", margin = { age = "year", sex = "sex" } },
]
reliability = { E = 0.165, F = 0.333 }  # or "statcan" (the default), "abs", "none"
blank = ["F"]                           # shown as F; the files keep the number
"""

PROGRAMMES = {"report": (REPORT, "2025-03"), "weblogs": (WEBLOGS, "2025-W14"), "census": (CENSUS, None)}


def make_files(folder):
    """Write public keys, records of a month and of a week, and a ledger of two accounts."""
    places = [("Brenvale", "Mill", "Heron"), ("Brenvale", "Mill", "Dove"), ("Estholm", "Outer Islands", None)]
    clinics = pd.DataFrame(places, columns=["region", "district", "clinic"])
    clinics.to_csv(folder / "clinics.csv", index=False)
    visits = clinics.assign(person=["a", "b", "c"], age=[30, 40, 50], cost=[1.0, 20.0, 300.0])
    (folder / "visits").mkdir()
    for month in ("2025-03", "2025-04"):
        visits.assign(date=pd.to_datetime(f"{month}-02")).to_parquet(folder / "visits" / f"{month}.parquet")
    (folder / "logs").mkdir()
    logs = pd.DataFrame({"visitor": [1, 2], "site": ["www", "shop"], "path": ["/", "/a"]})
    logs.assign(time=pd.to_datetime("2025-04-01")).to_parquet(folder / "logs" / "a.parquet")
    path = folder / "budget.sqlite"
    with dpt.Ledger.create(path, account="patients", rho=0.24, privacy_unit="person") as ledger:
        ledger.add_account("visitors", epsilon=10.0, delta=1e-5, privacy_unit="visitor")
