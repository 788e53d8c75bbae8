"""Whatever `--yaml` prints, PyYAML reads back as the same value."""

from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kaspar.cli.yaml_text import yaml_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WORDS = st.sampled_from(
    ["yes", "off", "0x1f", "0o7", "1_000", "12:30:45", "1.5e3", ".inf", "=", "<<", "?", "| a", "\x85"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | WORDS, inner, max_size=4), max_leaves=20
)


@settings(deadline=None)  # PyYAML takes its time
@given(VALUES)
@example([[], [[{}]], {"a": [{"b": {"c": [1, [2]]}}]}])
def test_any_value_is_read_back(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value
