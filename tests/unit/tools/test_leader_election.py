"""kafka-leader-election: its file of partitions, and its result_lines."""

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.elections import ElectionType
from kaspar.tools.command_line import CommandFailed
from kaspar.tools.leader_election import parse_partitions, result_lines


def test_partitions_of_a_file() -> None:
    text = '{"partitions": [{"topic": "b", "partition": 1}, {"topic": "a", "partition": 0}]}'
    assert parse_partitions(text) == [TopicPartition("b", 1), TopicPartition("a", 0)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Replica election data is empty"),
        ("{bad", "The file is not valid JSON"),
        ("{}", 'Replica election data is missing "partitions" field'),
        ('{"partitions": [{"topic": "a", "partition": true}]}', "Expected `Integer` value, received true"),
        ('{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}', "duplicate .*: .a-0."),
    ],
)
def test_wrong_files(text: str, sentence: str) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        parse_partitions(text)


def test_result_lines_has_a_line_for_each_outcome_and_each_failure() -> None:
    results = {
        TopicPartition("a", 2): None,
        TopicPartition("a", 0): None,
        TopicPartition("a", 1): Refused(ErrorCode.ELECTION_NOT_NEEDED, "ELECTION_NOT_NEEDED"),
        TopicPartition("b", 0): Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "PREFERRED_LEADER_NOT_AVAILABLE"),
        TopicPartition("b", 1): Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"),
    }
    failure = "Error completing leader election (PREFERRED) for partition: "
    assert result_lines(ElectionType.PREFERRED, results) == [
        "Successfully completed leader election (PREFERRED) for partitions a-0, a-2",
        "Valid replica already elected for partitions a-1",
        f"{failure}b-0: org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: "
        "The preferred leader was not available.",
        f"{failure}b-1: org.apache.kafka.common.errors.ClusterAuthorizationException: no",
    ]
    assert result_lines(ElectionType.UNCLEAN, {}) == []
