"""How tests call the command."""

from pandas_dptree.cli.commands import main

FACTOR = ["--mechanism", "multiplicative", "--epsilon", "1", "--delta", "1e-6", "--alpha", "0.25"]

BY = ["--by", "region", "--by", "district"]


def counts(files, *more, records="visits.csv"):
    return main(["counts", str(files / records), *BY, "--domain", str(files / "places.csv"), *more])


def run(files, verb, *more, records="visits.csv", domain="places.csv"):
    where = ["--domain", str(files / domain)]
    return main([verb, *([] if verb == "plan" else [str(files / records)]), *BY, *where, *more])
