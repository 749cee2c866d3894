"""JSON with indents and in one line, against Python's own encoder."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.plain_data import json_texts

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner), max_leaves=8
)


@settings(max_examples=40)
@given(values)
def test_the_text_is_that_of_python(value: object) -> None:
    plain = json.dumps(value, indent=1, allow_nan=False), json.dumps(value, sort_keys=True)
    assert json_texts(value) == plain


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("inf")], {"a": [[float("nan")]]}])
def test_numbers_that_json_does_not_know_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_texts(value)
