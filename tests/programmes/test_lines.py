"""Lines of keys, whatever stands in texts and comments."""

import tomllib

from pandas_dptree.programmes.lines import lines_of
from tests.helpers_toml import PROGRAMMES


def keys_of(values, path=()):
    for key, value in values.items():
        yield (*path, key)
        if isinstance(value, dict) and len(path) < 1:
            yield from keys_of(value, (*path, key))


def test_keys_of_programmes():
    for text, _ in PROGRAMMES.values():
        lines, raw = lines_of(text), text.split("\n")
        for path in keys_of(tomllib.loads(text)):
            if path in lines:
                assert path[-1] in raw[lines[path] - 1]
            else:
                assert any(key[: len(path)] == path for key in lines)


def test_texts_and_comments_hold_no_structure():
    text = '''\
a = "[x] = {" # [b] = [
c = """
d = 1
[e]
"""
f = [
  { g = 1 },
  "]",
]
h."i j".k = 1
[l.'m']
n = { o = 1 }
p = 1
q = [[1, 2], [[3],
  4], { r = 5 }]
[[s.t]]
[[s.t]]
u = [{ v = [{}, {}] }]
'''
    assert lines_of(text) == {
        ("a",): 1, ("c",): 2, ("f",): 6, ("h", "i j", "k"): 10, ("l", "m"): 11, ("l", "m", "n"): 12,
        ("l", "m", "p"): 13, ("f", "1"): 7, ("l", "m", "q"): 14, ("l", "m", "q", "1"): 14,
        ("l", "m", "q", "2"): 14, ("l", "m", "q", "3"): 15, ("s", "t"): 16, ("s", "t", "1"): 16,
        ("s", "t", "2"): 17, ("s", "t", "u"): 18, ("s", "t", "u", "1"): 18,
    }  # fmt: skip
    tomllib.loads(text)
