"""The engine for lookaround and back references agrees with Python's, on patterns that do not explode."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.schemas.json_schema.backtracking import compiled

_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\b", r"\B"])
_REPEATABLE = st.sampled_from(["a", "b", ".", "[ab]", r"\d"])
_QUANTIFIERS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?", "{0,2}?"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map(lambda options: f"(?:{options})"),
        st.builds("({}){}".format, inner, _QUANTIFIERS),
        st.builds("(?{}{})".format, st.sampled_from(["=", "!"]), inner),
        st.builds("(?<{}{})".format, st.sampled_from(["=", "!"]), _REPEATABLE),
    )


_WITHOUT_REFERENCES = st.recursive(
    st.one_of(_ATOMS, st.builds("{}{}".format, _REPEATABLE, _QUANTIFIERS)), _larger, max_leaves=5
)
_PATTERNS = st.one_of(
    _WITHOUT_REFERENCES, st.builds(r"({})\1{}{}".format, _WITHOUT_REFERENCES, _QUANTIFIERS, _WITHOUT_REFERENCES)
)


def _character(atom: str) -> re.Pattern[str]:
    return re.compile(atom, re.ASCII)


@settings(max_examples=400, deadline=None, database=None)
@given(_PATTERNS, st.lists(st.text(alphabet="ab1 ", max_size=6), min_size=3, max_size=6))
def test_search_finds_what_python_finds(pattern: str, texts: list[str]) -> None:
    search = compiled(pattern, lambda atom: lambda text: _character(atom).fullmatch(text) is not None)
    # ECMAScript's $ is the end of the text, Python's \Z.
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    for text in texts:
        if not text and r"\B" in pattern:
            continue  # Python before 3.14 does not find it in an empty text
        assert search(text) == (expected.search(text) is not None), (pattern, text)
