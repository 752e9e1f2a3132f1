"""Hypothesis strategies for data in JSON, and a way to tamper with it."""

import copy

from hypothesis import strategies as st


def replaced(written, place, value):
    data = copy.deepcopy(written)
    inner = data
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return data


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
