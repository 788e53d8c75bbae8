"""Creates one topic and returns its description, or only what it would be with `validate_only` (KIP-525)."""

from dataclasses import dataclass

from kaspar.base.errors import ErrorCode
from kaspar.client.admin.configs import ConfigEntry, config_source
from kaspar.client.admin.creation import NewTopic, creatable
from kaspar.client.admin.session import Admin, common_code, refuse
from kaspar.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    partitions: int
    """-1, like the replication factor, if the broker does not return it: the broker is older than Kafka 2.4, or the
    caller may not describe the topic's configs. Then the configs are None."""
    replication_factor: int
    configs: tuple[ConfigEntry, ...] | None


def create_topic(admin: Admin, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
    """Create a topic. Raises Refused."""
    response = admin.ask_controller(
        "createTopics",
        CreateTopicsRequest(topics=(creatable(topic),), timeout_ms=admin.timeout_ms, validate_only=validate_only),
        CreateTopicsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.topics),
    )
    (created,) = response.topics
    refuse(created.error_code, created.error_message)
    configs = None
    if created.configs is not None and created.topic_config_error_code == ErrorCode.NONE:
        configs = tuple(
            ConfigEntry(each.name, each.value, config_source(each.config_source), each.is_sensitive, each.read_only)
            for each in created.configs
        )
    return CreatedTopic(created.num_partitions, created.replication_factor, configs)
