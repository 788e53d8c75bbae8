"""The configs in a CreateTopics response."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.unit.broker.running import Client, run, running


def test_topics_of_one_request_are_returned_with_their_own_configs(tmp_path: Path) -> None:
    def new_topic(name: str, **configs: str) -> CreatableTopic:
        named = (CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
        return CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=tuple(named))

    topics = (
        new_topic("a"),
        new_topic("b", retention_ms="5000", segment_bytes=" 2000000"),
        new_topic("c", segment_bytes=" 2000000", retention_ms="5000"),
        new_topic("d", retention_ms="6000"),
        new_topic("e", retention_ms="long"),
        new_topic("f"),
    )

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            client = Client(broker)
            client.send(CreateTopicsRequest(topics=topics, timeout_ms=10_000), version=7)
            response = await client.response(CreateTopicsResponse)
            reported = {
                topic.name: {entry.name: entry.value for entry in topic.configs or ()} for topic in response.topics
            }
            codes = {topic.name: topic.error_code for topic in response.topics}
            assert codes == dict.fromkeys("abcdf", ErrorCode.NONE) | {"e": ErrorCode.INVALID_CONFIG}
            defaults = {entry.name: entry.value for entry in broker.settings.describe_topic({})}
            assert reported["a"] == reported["f"] == defaults
            assert reported["b"] == reported["c"] == defaults | {"retention.ms": "5000", "segment.bytes": " 2000000"}
            assert reported["d"] == defaults | {"retention.ms": "6000"}

    run(scenario())
