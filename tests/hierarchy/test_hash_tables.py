"""A label is found if it is equal and only then, whatever the hashes, and soon, whoever chose the labels."""

import pickle

import numpy as np
import pytest

from pandas_dptree.hierarchy import hash_tables
from pandas_dptree.hierarchy.hash_tables import ByteStrings, DenseTable, HashTable, TextTable, WholeTable
from tests.helpers_cases import each

FACTOR = int(hash_tables._FACTOR)
INVERSE = pow(FACTOR, -1, 2**64)
LENGTHS = [0, 1, 7, 8, 9, 16, 31, 32, 33, 39, 40, 41, 80]


@pytest.fixture
def known_hash(monkeypatch):
    """Let the hash of all tables be known, so that numbers can be chosen by their hashes."""
    monkeypatch.setattr(hash_tables, "_salt", lambda: np.uint64(0))


def hashed_to(hash):
    """The number with a given hash, if that is known."""
    product = hash * INVERSE % 2**64
    return product ^ (product >> 32)


def with_one_hash(n, length, random):
    """Texts of some words, all with the same hash if that is known."""
    texts, wanted = [], 4711
    for _ in range(n):
        *words, _ = random.integers(0, 2**64, length // 8, dtype=np.uint64).tolist()
        state = length * FACTOR % 2**64
        for word in words:
            state = int(hash_tables.spread_bits(np.array([state ^ word], dtype=np.uint64))[0])
        texts.append(b"".join(word.to_bytes(8, "little") for word in [*words, state ^ wanted]))
    return texts


def check(table, labels, wanted, find=lambda table, wanted: table.find(wanted)):
    place = {label: number for number, label in enumerate(labels)}
    assert len(place) == len(labels)
    expected = [place.get(each, -1) for each in wanted]
    assert find(table, wanted).tolist() == expected
    assert find(pickle.loads(pickle.dumps(table)), wanted).tolist() == expected


def of_numbers(table, wanted):
    return table.find(np.array(wanted, dtype=np.uint64).view(np.int64))


def of_texts(table, wanted):
    return table.find(ByteStrings.of(wanted))


@each("n", [0, 1, 2, 100])
@each("start", [0, 2**63, 2**64 - 100])
def test_numbers_with_neighbouring_hashes(known_hash, n, start):
    """The last of them are beyond the end of a table that has just room for their number."""
    labels = [hashed_to(start + place) for place in range(n)][::-1]
    others = [hashed_to(start + place) for place in range(-min(start, 100), 100)]
    check(WholeTable(np.array(labels, dtype=np.uint64)), labels, [*others, *labels, 0, 2**64 - 1], of_numbers)


@each("least", [-(2**63), -3, 0, 2**63 - 51])
def test_numbers_in_a_narrow_range(least):
    labels = np.random.default_rng(0).permutation(np.arange(least, least + 50, 3))
    wanted = [*range(least, least + 50), 0, -1, 1, 2**63 - 1, -(2**63)]
    check(DenseTable(labels), labels.tolist(), wanted, lambda table, each: table.find(np.array(each)))


@each("length", [16, 32, 40, 64])
def test_texts_with_equal_hashes(known_hash, length):
    random = np.random.default_rng(length)
    alike = with_one_hash(60, length, random)
    table = TextTable(ByteStrings.of(alike[:30]))
    hashes = hash_tables._hashes(table._salt, ByteStrings.of(alike).lengths, ByteStrings.of(alike).words())
    assert len(set(hashes.tolist())) == 1
    almost = [text[:-1] for text in alike] + [text[:-1] + bytes([text[-1] ^ 1]) for text in alike]
    wanted = random.permutation(np.array([*alike, *almost, b"", b"x" * 99], dtype=object)).tolist()
    for part in (wanted, wanted[:1], wanted[:7]):
        check(table, alike[:30], part, of_texts)


@each("seed", range(20))
def test_texts_that_are_almost_equal(seed):
    """They differ in zeros at their ends, and in words that other texts do not have."""
    random = np.random.default_rng(seed)
    texts = [bytes(random.choice([0, 97, 255], length).tolist()) for length in random.choice(LENGTHS, 200)]
    labels = list(dict.fromkeys(texts[: 10 * (seed % 5)]))
    for wanted in (texts, [b""] * 3, [text for text in texts if len(text) == 8]):
        check(TextTable(ByteStrings.of(labels)), labels, wanted, of_texts)


def n_comparisons(monkeypatch, search):
    """Count how often the labels of all rows are compared."""
    calls = []
    find = HashTable.find

    def counted(table, hashes, same):
        return find(table, hashes, lambda rows, labels: calls.append(1) or same(rows, labels))

    with monkeypatch.context() as patch:
        patch.setattr(HashTable, "find", counted)
        search()
    return len(calls)


def test_nobody_can_choose_labels_that_take_long_to_find(monkeypatch):
    """Without a hash of its own for each table, 100,000 such labels took three minutes."""
    numbers = np.array([hashed_to(place) for place in range(2000)], dtype=np.uint64)
    texts = ByteStrings.of(with_one_hash(500, 24, np.random.default_rng(0)))
    for own, of_these, of_those in [(0, 2001, 501), (0x1234567890ABCDEF, 99, 99)]:
        monkeypatch.setattr(hash_tables, "_salt", lambda own=own: np.uint64(own))
        assert n_comparisons(monkeypatch, lambda: WholeTable(numbers).find(numbers)) <= of_these
        assert n_comparisons(monkeypatch, lambda: TextTable(texts).find(texts)) <= of_those
    monkeypatch.undo()
    assert len({int(hash_tables._salt()) for _ in range(9)}) == 9
