"""Hypothesis strategies for data in JSON, and ways to tamper with it."""

import copy

from hypothesis import strategies as st

from pandas_dptree.plans.serialize import digest_of


def resealed(written):
    """State the digest that a forged plan would have, as a forger would."""
    try:
        return {**written, "digest": digest_of(written)}
    except (TypeError, ValueError, RecursionError):
        return written  # no JSON: there is no such digest


def replaced(written, place, value):
    """Replace one entry of a plan, and its digest."""
    data = copy.deepcopy(written)
    inner = data
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return resealed(data) if "digest" in data and place != ("digest",) else data


def without(written, *place):
    """Leave out one entry of a plan, and recompute its digest."""
    data = copy.deepcopy(written)
    inner = data
    for name in place[:-1]:
        inner = inner[name]
    del inner[place[-1]]
    return resealed(data) if "digest" in data else data


json_words = ["exact", "proof", "replace", "laplace", "gaussian", "multiplicative", "none", "person", "", "x"]
json_keys = st.sampled_from(["alpha", "epsilon", "delta", "rho", "exact", "column", "x"])
json_scalars = st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(json_words)
json_scalars |= st.integers(10**300, 10**400)
json_values = st.recursive(
    json_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(json_keys, inner)
)


def places_in_json(written):
    inner = [(outer, key) for outer, value in written.items() if isinstance(value, dict) for key in value]
    return [*((key,) for key in written), *inner]
