"""Messages in the words of the shell."""

import argparse

from pandas_dptree.cli.shell_words import in_shell_words
from tests.helpers_cases import each

HERE = argparse.Namespace(run=None, records=None, by=[], epsilon=None, charge=None)


@each(
    ("hint", "in_shell"),
    [
        ("for example epsilon=1.0, or rho=0.1.", "for example --epsilon 1.0, or --rho 0.1."),
        ('for example privacy_unit="person", max_contributions=3; or', "for example --privacy-unit person, "
         "--max-contributions 3; or"),
        ('as in by=["state", "county"].', "as in --by state --by county."),
        ("for example bounds=(0, 500).", "for example --bounds 0 500."),
        ('for example target={"county": 2}.', "for example --target county=2."),
        ("or allow_repeat=True, which", "or --allow-repeat, which"),
        ("name it: name=... A new", "name it: --name ... A new"),
        ("state max_contributions too.", "state --max-contributions too."),
        ("0.1 of unknown=3 is left.", "0.1 of unknown=3 is left."),
        ("open it with dpt.Ledger.open(path), or", "use it, or add an account with `dptree ledger add`, or"),
    ],
)  # fmt: skip
def test_hints_name_options(hint, in_shell):
    assert in_shell_words(f"A fact.\nHint: {hint}", HERE) == f"A fact.\nHint: {in_shell}"


def test_facts_keep_their_numbers():
    fact = "The account 'a' has 0.1 of rho=1 left, and `max_contributions` is 3."
    expected = "The account 'a' has 0.1 of rho=1 left, and `--max-contributions` is 3."
    assert in_shell_words(f"{fact}\nHint: leave it out.", HERE) == f"{expected}\nHint: leave it out."
