"""Values that no message may show."""

SECRET, NUMBER, N = "Ann", 7731, 100
"""Both stand in every bad argument, and in no message."""


class Printing:
    """Prints a record whenever it is asked what it is."""

    def __repr__(self):
        return SECRET

    __str__ = __repr__


class Unprintable:
    def __repr__(self):
        raise RuntimeError


def shows_secret(text):
    return SECRET in text or str(NUMBER) in text
