"""The decision log as a topic: how it is made, and what is said where it is not what it should be."""

import logging
from uuid import uuid4

import pytest

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.client import Client
from kaspar.client.cluster import TopicReplaced
from kaspar.exactly_once.decision_log import PARTITIONS, TOPIC, DecisionLog
from kaspar.exactly_once.errors import LogLost
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kaspar.protocol.messages.fetch import PartitionData
from kaspar.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class ClusterOf(Client):
    """Some brokers, with a log of so many replicas; None: it is not there yet."""

    def __init__(self, brokers: int, replicas: int | None = None) -> None:
        super().__init__("h:9092")
        self.brokers, self.replicas = brokers, replicas
        self.made: list[CreatableTopic] = []
        self.first_offset = 0
        self.policy = "compact"
        self.policy_code = ErrorCode.NONE
        self.topic_id = uuid4()

    def refresh_metadata(self, topics: list[str] | None) -> MetadataResponse:
        partitions = tuple(
            MetadataResponsePartition(
                partition_index=number, leader_id=0, replica_nodes=tuple(range(self.replicas or 0)), isr_nodes=()
            )
            for number in range(PARTITIONS)
        )
        code = ErrorCode.NONE if self.replicas is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=n, host="h", port=n) for n in range(self.brokers)),
            topics=(MetadataResponseTopic(error_code=code, name=TOPIC, topic_id=self.topic_id, partitions=partitions),),
        )

    def request_controller(self, message, response_class, version=None):  # type: ignore[no-untyped-def]
        assert isinstance(message, CreateTopicsRequest)
        self.made += message.topics
        return CreateTopicsResponse(topics=(CreatableTopicResult(name=TOPIC, error_code=0, error_message=None),))

    def request(self, message, response_class, version=None):  # type: ignore[no-untyped-def]
        assert isinstance(message, DescribeConfigsRequest)
        found = DescribeConfigsResult(
            error_code=self.policy_code,
            error_message=None,
            resource_type=2,
            resource_name=TOPIC,
            configs=(
                DescribeConfigsResourceResult(
                    name="cleanup.policy", value=self.policy, read_only=False, is_sensitive=False, synonyms=()
                ),
            ),
        )
        return DescribeConfigsResponse(results=(found,))

    def fetch(self, topic: str, partition: int, offset: int, **how: object) -> PartitionData:
        if how["topic_id"] not in (None, self.topic_id):
            raise TopicReplaced(topic)
        if offset < self.first_offset:
            raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, "out of range")
        return PartitionData(
            partition_index=partition, error_code=0, high_watermark=0, aborted_transactions=(), records=b""
        )


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, "1"), (2, 2, "2"), (3, 3, "2"), (9, 3, "2")])
def test_a_decision_is_acknowledged_by_two_replicas_where_there_are_two(
    brokers: int, replicas: int, in_sync: str
) -> None:
    cluster = ClusterOf(brokers)
    DecisionLog(cluster).read_to_end("query")
    (made,) = cluster.made
    settings = {config.name: config.value for config in made.configs}
    assert made.replication_factor == replicas
    assert settings["min.insync.replicas"] == in_sync
    assert settings["unclean.leader.election.enable"] == "false"
    assert settings["segment.bytes"] == settings["max.message.bytes"], "or the largest batch could not be stored"


def test_a_log_with_too_few_replicas_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        DecisionLog(ClusterOf(3, replicas=3)).read_to_end("query")
        DecisionLog(ClusterOf(1, replicas=1)).read_to_end("query")
        assert caplog.messages == []
        DecisionLog(ClusterOf(3, replicas=1)).read_to_end("query")
    assert "has 1 replicas and should have 3" in caplog.text


def test_a_log_whose_first_records_are_gone_says_what_helps() -> None:
    cluster = ClusterOf(1, replicas=1)
    cluster.first_offset = 5
    with pytest.raises(KasparError, match=f"until the topic {TOPIC} is deleted"):
        DecisionLog(cluster).read_to_end("query")


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete,compact"])
def test_a_log_that_would_forget_what_was_decided_is_refused(policy: str) -> None:
    cluster = ClusterOf(1, replicas=1)
    cluster.policy = policy
    with pytest.raises(KasparError, match=f"cleanup.policy={policy}, which deletes decisions"):
        DecisionLog(cluster).read_to_end("query")


def test_a_cleanup_policy_that_may_not_be_read_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ClusterOf(1, replicas=1)
    cluster.policy_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    DecisionLog(cluster).read_to_end("query")
    assert "was not checked" in caplog.text


def test_what_was_read_of_a_log_does_not_count_for_the_one_that_took_its_place() -> None:
    cluster = ClusterOf(1, replicas=1)
    log = DecisionLog(cluster)
    log.read_to_end("query").generations["run"] = 1
    cluster.topic_id = uuid4()
    with pytest.raises(LogLost, match="was recreated"):
        log.read_to_end("query")
    assert log.state("query").generations == {}
