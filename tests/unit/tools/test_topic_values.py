"""Values of the options of kafka-topics."""

import pytest

from kaspar.base.ids import uuid_to_text
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.topics.values import new_configs, replica_assignment, topic_id


@pytest.mark.parametrize(
    ("text", "assignment"),
    [(None, []), ("", []), (",", []), ("1", [[1]]), ("1:2, 2:3", [[1, 2], [2, 3]]), ("3,2,1,", [[3], [2], [1]])],
)
def test_replica_assignment(text: str | None, assignment: list[list[int]]) -> None:
    assert replica_assignment(text) == assignment


@pytest.mark.parametrize("text", ["1:1", "1:2,3", "1:x", "1,,2", "1:"])
def test_wrong_replica_assignment(text: str) -> None:
    with pytest.raises(CommandFailed):
        replica_assignment(text)


def test_configs() -> None:
    assert new_configs(["a=1", "b = 2 ", "a=3"]) == {"a": "3", "b": "2"}


@pytest.mark.parametrize("word", ["a", "a=", "a=b=c", ""])
def test_wrong_configs(word: str) -> None:
    with pytest.raises(CommandFailed, match='must be in the format "key=val"'):
        new_configs([word])


def test_topic_id() -> None:
    text = "T5uHnpDuTr2toiJENl3g3g"
    assert uuid_to_text(topic_id(text)) == text
    assert topic_id(text + "==") == topic_id(text)


@pytest.mark.parametrize("text", ["zork", "!" * 22, "A" * 25])
def test_wrong_topic_id(text: str) -> None:
    with pytest.raises(CommandFailed):
        topic_id(text)
