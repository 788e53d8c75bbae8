"""Filters of any text either parse or fail with FilterError, and their evaluation ends within its steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kaspar.console.messages.filters import Filter, FilterError
from kaspar.console.messages.filters.evaluating import Evaluation, StepLimit
from kaspar.console.messages.filters.parsing import condition_of

EXAMPLES = settings(max_examples=150, deadline=None, database=None)
VOCABULARY = """
    and or not is null true false now in contains startswith endswith matches key value headers offset partition
    timestamp topic len lower upper number text abs ( ) [ ] [*] . , $ * + - / % == = != < <= > >= && || !
    'a' "b" '(?i)x' 0 1 42 1.5 1e9 5m 2026-01-02 2026-01-02T03:04:05Z .a .b [0] [-1] ['a'] 'half
"""
WORDS = st.sampled_from([*VOCABULARY.split(), "value * value", "text ( value * key ) contains", "text ( value )"])
FILTERS = st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=60)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2_000, 4_299).map(lambda digits: 10**digits)  # JSON numbers have up to 4,300 digits
    | st.floats()
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "a b"]), inner, max_size=3),
    max_leaves=12,
)


@dataclass
class AnyRecord:
    decoded: Any
    topic: str = "t"
    partition: int = 0
    offset: int = 1
    timestamp: int = 2

    def key(self) -> Any:
        return self.decoded

    def value(self) -> Any:
        return self.decoded

    def headers(self) -> Mapping[str, str | None]:
        return {"a": "1", "b": None}

    def texts(self) -> Iterable[str]:
        return (str(self.decoded),)


def parsed(text: str) -> Filter | None:
    try:
        return Filter(text, now_ms=10)
    except FilterError as error:
        failure = error
    assert 1 <= failure.column <= len(text) + 1
    assert failure.message.endswith(".")
    return None


@EXAMPLES
@given(FILTERS, JSON)
def test_every_text_parses_or_fails_with_a_column_and_evaluates_on_every_record(text: str, value: Any) -> None:
    each = parsed(text)
    if each is not None:
        assert each.matches(AnyRecord(value)) in (True, False)


@EXAMPLES
@given(FILTERS, JSON, st.integers(0, 40))
def test_evaluation_stays_within_its_steps(text: str, value: Any, limit: int) -> None:
    if parsed(text) is None or not text.strip():
        return
    node = condition_of(text)
    within = Evaluation(AnyRecord(value), 10, 100_000)
    free = within.holds(node)
    used = 100_000 - within.steps_left
    limited = Evaluation(AnyRecord(value), 10, limit)
    try:
        assert limited.holds(node) == free
    except StepLimit:
        assert used > limit
    else:
        assert used <= limit


@EXAMPLES
@given(FILTERS, FILTERS, JSON)
def test_connectives_follow_their_truth_tables(one: str, other: str, value: Any) -> None:
    if parsed(one) is None or parsed(other) is None or not one.strip() or not other.strip():
        return
    record = AnyRecord(value)
    left, right = (Filter(text, now_ms=10).matches(record) for text in (one, other))
    assert Filter(f"({one}) and ({other})", now_ms=10).matches(record) == (left and right)
    assert Filter(f"({one}) or ({other})", now_ms=10).matches(record) == (left or right)
    assert Filter(f"not ({one})", now_ms=10).matches(record) != left
