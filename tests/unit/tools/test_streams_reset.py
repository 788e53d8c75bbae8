"""kafka-streams-application-reset: which offsets, which times, which topics."""

from collections.abc import Collection, Mapping

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.streams_reset import internal_topics, positions
from kaspar.tools.times import parse_datetime, parse_duration

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Log:
    """Partitions with offsets from 5 to 10; B has no records any more."""

    def __init__(self, committed: Mapping[TopicPartition, int]) -> None:
        self._committed = committed

    def earliest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: 5 if where == A else 10 for where in partitions}

    def latest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 10)

    def at(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> dict[TopicPartition, int]:
        return {where: 7 if where == A and timestamp_ms <= 100 else -1 for where in partitions}

    def committed(self) -> Mapping[TopicPartition, int]:
        return self._committed


@pytest.mark.parametrize(
    ("offset", "expected", "note"),
    [
        (7, 7, None),
        (5, 5, "New offset (5) is lower than earliest offset. Value will be set to 5"),
        (-3, 5, "New offset (-3) is lower than earliest offset. Value will be set to 5"),
        (10, 10, "New offset (10) is higher than latest offset. Value will be set to 10"),
        (99, 10, "New offset (99) is higher than latest offset. Value will be set to 10"),
    ],
)
def test_offset_stays_within_the_log(offset: int, expected: int, note: str | None) -> None:
    found = positions.to_offset(Log({}), [A], offset)
    assert found == positions.Positions({A: expected}, [note] if note else [])


def test_shift_is_from_the_committed_offset_or_else_from_the_end() -> None:
    found = positions.shifted(Log({A: 9, TopicPartition("other", 0): 1}), [A, B], -2)
    assert found.offsets == {A: 7, B: 10}


def test_time_without_records_since_is_the_end() -> None:
    found = positions.to_time(Log({}), [A, B], 100)
    assert found.offsets == {A: 7, B: 10}
    assert found.notes == [
        "Partition 1 from topic t is empty, without a committed record. Falling back to latest known offset."
    ]


def test_plan_has_exactly_the_partitions_of_the_input() -> None:
    assert positions.from_plan(Log({}), [A], {A: 6}).offsets == {A: 6}
    with pytest.raises(CommandFailed, match="no offsets for these partitions of the input topics: t-1"):
        positions.from_plan(Log({}), [A, B], {A: 6})
    with pytest.raises(CommandFailed, match="not of the input topics: t-1"):
        positions.from_plan(Log({}), [A], {A: 6, B: 6})


def test_plan_is_lines_of_topic_partition_and_offset() -> None:
    assert positions.parse_plan("t,0,6\nt,1,-7\n") == {A: 6, B: -7}


@pytest.mark.parametrize("text", ["", "\n", "t,0", "t,0,1,2", "t,x,1", "t,0, 1", "t,0,1_0"])
def test_plan_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed):
        positions.parse_plan(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01.5", 1005),
        ("1970-01-01T01:00:00.000Z", 3_600_000),
        ("1970-01-01T01:00:00.000+01", 0),
        ("1970-01-01T01:00:00.000-01:30", 9_000_000),
        ("2023-11-14T22:13:20.000", 1_700_000_000_000),
    ],
)
def test_datetime(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize("text", ["1970-01-01", "1970-01-01T00:00:01", "1970-02-30T00:00:00.000", "T", "1970-01-01T"])
def test_datetime_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1S", 1000), ("P1D", 86_400_000), ("P1DT2H3M4.5S", 93_784_500), ("-PT1M", -60_000), ("PT-1.5S", -1500)],
)
def test_duration(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P1DT"])
def test_duration_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="Text cannot be parsed to a Duration"):
        parse_duration(text)


def test_internal_topics_have_the_prefix_of_the_application_and_a_known_ending() -> None:
    internal = [
        "app-store-changelog",
        "app-x-repartition",
        "app-x-subscription-registration-topic",
        "app-x-subscription-response-topic",
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000007-topic",
    ]
    others = ["app.store-changelog", "application-x-changelog", "app-output", "x-app-changelog", "app-own-changelog"]
    assert internal_topics.inferred("app", [*internal, *others], {"app-own-changelog"}) == internal


def test_internal_topics_of_an_application_with_a_longer_name_are_not_those_of_this_one() -> None:
    topics = ["app-s-changelog", "app-2-s-changelog", "app-3-s-changelog"]
    assert internal_topics.of_others("app", topics, ["app", "app-2", "other"]) == ["app-2-s-changelog"]
    assert internal_topics.of_others("app-2", topics[1:2], ["app", "app-2"]) == []


def test_specified_internal_topics_must_be_inferred() -> None:
    assert internal_topics.chosen([], ["a", "b"]) == ["a", "b"]
    assert internal_topics.chosen(["b"], ["a", "b"]) == ["b"]
    with pytest.raises(CommandFailed, match="Invalid topic specified in the --internal-topics option"):
        internal_topics.chosen(["c"], ["a", "b"])
