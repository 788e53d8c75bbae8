"""Joins that cannot be are refused with a sentence when they are built."""

from collections.abc import Callable
from typing import Any

import pytest

from kaspar.streams import JoinWindows, StreamsBuilder, TimeWindows, TopologyError, serdes
from tests.unit.streams.joins.runs import plus

WINDOWS = JoinWindows.of_time_difference(5)


class Sides:
    """Streams and tables, whose types are not checked: what a type checker finds is refused here, too."""

    def __init__(self) -> None:
        self.builder = StreamsBuilder()
        self.stream: Any = self.builder.stream("left")
        self.other = self.builder.stream("right")
        self.table: Any = self.builder.table("table")
        self.other_table = self.builder.table("other-table")
        self.global_table = self.builder.global_table("global")
        windowed: Any = self.other.group_by_key().windowed_by(TimeWindows.of_size(5))
        self.windowed = windowed.count()
        self.elsewhere = StreamsBuilder()


REFUSED: list[tuple[str, Callable[[Sides], Any]]] = [
    ("needs windows", lambda s: s.stream.join(s.other, plus)),
    ("needs windows", lambda s: s.stream.join(s.other, plus, TimeWindows.of_size(5))),
    ("takes no key_selector", lambda s: s.stream.join(s.other, plus, WINDOWS, key_selector=plus)),
    ("as joiner, not None", lambda s: s.stream.join(s.other, None, WINDOWS)),
    ("with a stream, a table or a global table, not with 'right'", lambda s: s.stream.join("right", plus)),
    ("same StreamsBuilder", lambda s: s.stream.join(s.elsewhere.stream("x"), plus, WINDOWS)),
    ("a stream with a table takes no windows", lambda s: s.stream.join(s.table, plus, WINDOWS)),
    ("takes no store_name", lambda s: s.stream.join(s.table, plus, store_name="x")),
    ("takes no other_value_serde", lambda s: s.stream.join(s.table, plus, other_value_serde=serdes.text())),
    ("takes no key_selector", lambda s: s.stream.join(s.table, plus, key_selector=plus)),
    ("outer join of a stream with a table", lambda s: s.stream.outer_join(s.table, plus, None)),
    ("same StreamsBuilder", lambda s: s.stream.join(s.elsewhere.table("x"), plus)),
    ("needs key_selector", lambda s: s.stream.join(s.global_table, plus)),
    ("a stream with a global table takes no windows", lambda s: s.stream.join(s.global_table, plus, WINDOWS)),
    ("outer join of", lambda s: s.stream.outer_join(s.global_table, plus, None, key_selector=plus)),
    ("another StreamsBuilder", lambda s: s.stream.join(s.elsewhere.global_table("x"), plus, key_selector=plus)),
    ("a table, not with", lambda s: s.table.join(s.stream, plus)),
    ("as joiner, not 1", lambda s: s.table.join(s.other_table, 1)),
    ("same StreamsBuilder", lambda s: s.table.join(s.elsewhere.table("x"), plus)),
    ("needs foreign_key", lambda s: s.table.join(s.other_table, plus, foreign_key="column")),
    ("cannot be used in a foreign-key join", lambda s: s.windowed.join(s.table, plus, foreign_key=str)),
    ("cannot be used in a foreign-key join", lambda s: s.table.join(s.windowed, plus, foreign_key=str)),
    ("contain nothing", lambda s: WINDOWS.before(-6)),
    ("contain nothing", lambda s: WINDOWS.after(-6)),
    ("must not be negative", lambda s: JoinWindows.of_time_difference(-1)),
    ("must not be negative", lambda s: WINDOWS.grace(-1)),
    ("must be a timedelta or a number of milliseconds", lambda s: WINDOWS.before(0.5)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("sentence", "build"), REFUSED, ids=[f"{n}-{each[0]}" for n, each in enumerate(REFUSED)])
def test_a_join_that_cannot_be_is_refused(sentence: str, build: Callable[[Sides], Any]) -> None:
    with pytest.raises(TopologyError, match=sentence):
        build(Sides())


def test_joins_of_one_stream_with_different_serdes_need_names() -> None:
    sides = Sides()
    stream = sides.stream.select_key(lambda key, value: value)
    stream.join(sides.table, plus, value_serde=serdes.json())
    with pytest.raises(TopologyError, match="have different serdes"):
        stream.join(sides.other_table, plus, value_serde=serdes.text())
    stream.join(sides.other_table, plus, value_serde=serdes.text(), name="second")
    sides.builder.build()
