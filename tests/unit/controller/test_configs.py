"""Changing settings of topics, brokers, groups and client-metrics subscriptions."""

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.config import AlterOperation
from kaspar.controller.events import (
    DONE,
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    Outcome,
    ResourceType,
)
from kaspar.metadata.image import CLUSTER_DEFAULT, ClusterImage
from tests.unit.controller.clusters import after, cluster, controller, with_topic

SET, DELETE, APPEND, SUBTRACT = (
    AlterOperation.SET,
    AlterOperation.DELETE,
    AlterOperation.APPEND,
    AlterOperation.SUBTRACT,
)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")
BROKER = ConfigResource(ResourceType.BROKER, "1")


def change(resource: ConfigResource, *operations: tuple[str, int, str | None], replace: bool = False) -> ConfigChange:
    return ConfigChange(resource, tuple(ConfigOperation(*operation) for operation in operations), replace)


def alter(image: ClusterImage, *changes: ConfigChange) -> tuple[ClusterImage, list[Outcome]]:
    decision = controller().decide(image, AlterConfigs(changes))
    assert [reply.resource for reply in decision.reply] == [each.resource for each in changes]
    return after(decision, image), [reply.outcome for reply in decision.reply]


def test_incremental_changes_of_a_topic() -> None:
    image = with_topic(cluster(), "t", retention_ms="5", segment_ms="7")
    image, outcomes = alter(
        image,
        change(
            TOPIC,
            ("retention.ms", SET, "6"),
            ("segment.ms", DELETE, None),
            ("cleanup.policy", APPEND, "compact"),
            ("never.set", DELETE, None),
        ),
    )
    assert outcomes == [DONE]
    assert image.topics["t"].configs == {"retention.ms": "6", "cleanup.policy": "delete,compact"}


def test_the_older_alter_configs_drops_what_it_does_not_name() -> None:
    image = with_topic(cluster(), "t", retention_ms="5", segment_ms="7")
    image, outcomes = alter(image, change(TOPIC, ("retention.ms", SET, "6"), replace=True))
    assert outcomes == [DONE]
    assert image.topics["t"].configs == {"retention.ms": "6"}


def test_broker_settings_for_one_and_for_all() -> None:
    everyone = ConfigResource(ResourceType.BROKER, CLUSTER_DEFAULT)
    image, outcomes = alter(
        cluster(),
        change(BROKER, ("max.connections", SET, "5")),
        change(everyone, ("message.max.bytes", SET, "1000")),
    )
    assert outcomes == [DONE, DONE]
    assert image.broker_config(1) == {"max.connections": "5"}
    assert image.cluster_broker_config == {"message.max.bytes": "1000"}
    config = controller().settings(image).config
    assert (config.max_connections, config.message_max_bytes) == (5, 1000)
    image, outcomes = alter(image, change(BROKER, ("max.connections", DELETE, None)))
    assert outcomes == [DONE]
    assert "1" not in image.broker_configs


def test_dynamic_broker_settings_count_for_new_topics() -> None:
    everyone = ConfigResource(ResourceType.BROKER, CLUSTER_DEFAULT)
    image, _ = alter(cluster(), change(everyone, ("log.cleaner.max.compaction.lag.ms", SET, "5")))
    image = with_topic(image, "t")
    _, outcomes = alter(image, change(TOPIC, ("min.compaction.lag.ms", SET, "10")))
    assert outcomes == [
        Outcome(
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        )
    ]


def test_groups_and_client_metrics_need_not_exist() -> None:
    group = ConfigResource(ResourceType.GROUP, "g/ö")
    metrics = ConfigResource(ResourceType.CLIENT_METRICS, "sub")
    image, outcomes = alter(
        cluster(),
        change(group, ("consumer.session.timeout.ms", SET, "50000")),
        change(metrics, ("interval.ms", SET, "1000"), ("metrics", APPEND, "a,b")),
    )
    assert outcomes == [DONE, DONE]
    assert image.group_configs == {"g/ö": {"consumer.session.timeout.ms": "50000"}}
    assert image.client_metrics_configs == {"sub": {"interval.ms": "1000", "metrics": "a,b"}}


@pytest.mark.parametrize(
    ("wrong", "code", "sentence"),
    [
        (
            change(TOPIC, ("segment.bytes", SET, "1")),
            ErrorCode.INVALID_CONFIG,
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            change(TOPIC, ("segment.bytes", APPEND, "1")),
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key segment.bytes because its type is not LIST.",
        ),
        (change(TOPIC, ("foo", SET, "1")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
        (
            change(ConfigResource(ResourceType.TOPIC, "nope"), ("segment.ms", SET, "5")),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nope' does not exist.",
        ),
        (
            change(ConfigResource(ResourceType.TOPIC, "bad name!"), ("segment.ms", SET, "5")),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (
            change(TOPIC, ("segment.ms", SET, "5"), ("segment.ms", SET, "6")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            change(TOPIC, ("segment.ms", SET, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : segment.ms",
        ),
        (change(TOPIC, ("segment.ms", 9, "1")), ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        (
            change(ConfigResource(77, "x"), ("a", SET, "b")),
            ErrorCode.INVALID_REQUEST,
            "Unknown resource type 77",
        ),
        (
            change(BROKER, ("log.dirs", SET, "/x")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [log.dirs]",
        ),
        (
            change(BROKER, ("log.cleaner.threads", SET, "x")),
            ErrorCode.INVALID_REQUEST,
            "Invalid value x for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (
            change(BROKER, ("log.cleaner.threads", SET, "0")),
            ErrorCode.INVALID_REQUEST,
            "Log cleaner threads should be at least 1",
        ),
        (
            change(BROKER, ("log.cleaner.threads", SET, "3")),
            ErrorCode.INVALID_REQUEST,
            "Log cleaner threads cannot be increased to more than double the current value 1",
        ),
        (
            change(ConfigResource(ResourceType.BROKER, "x"), ("max.connections", SET, "5")),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        ),
        (
            change(ConfigResource(ResourceType.BROKER, "7"), ("max.connections", SET, "5")),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 7",
        ),
        (
            change(ConfigResource(ResourceType.BROKER, ""), ("listeners", SET, "PLAINTEXT://:1")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (
            change(ConfigResource(ResourceType.TOPIC, ""), ("segment.ms", SET, "5")),
            ErrorCode.INVALID_REQUEST,
            "Default topic resources are not allowed.",
        ),
        (
            change(BROKER, ("max.connections", APPEND, "5")),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: max.connections",
        ),
        (change(BROKER, ("foo.bar", SUBTRACT, "5")), ErrorCode.INVALID_CONFIG, "Unknown config name: foo.bar"),
        (
            change(ConfigResource(ResourceType.GROUP, "g"), ("consumer.session.timeout.ms", SET, "5")),
            ErrorCode.INVALID_CONFIG,
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            change(ConfigResource(ResourceType.GROUP, "g"), ("streams.num.standby.replicas", SET, "3")),
            ErrorCode.INVALID_CONFIG,
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            change(ConfigResource(ResourceType.CLIENT_METRICS, ""), ("interval.ms", SET, "1000")),
            ErrorCode.INVALID_REQUEST,
            "Subscription name can't be empty",
        ),
        (
            change(ConfigResource(ResourceType.CLIENT_METRICS, "s"), ("interval.ms", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            change(ConfigResource(ResourceType.CLIENT_METRICS, "s"), ("foo", SET, "1")),
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: foo",
        ),
        (
            change(ConfigResource(ResourceType.CLIENT_METRICS, "s"), ("match", SET, "client_id")),
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id",
        ),
        (
            change(ConfigResource(ResourceType.CLIENT_METRICS, "s"), ("match", SET, "client_id=[")),
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=[",
        ),
        (
            change(ConfigResource(ResourceType.GROUP, "g"), ("foo", SET, "1")),
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name: foo",
        ),
        (
            change(ConfigResource(ResourceType.GROUP, ""), ("consumer.session.timeout.ms", SET, "50000")),
            ErrorCode.INVALID_REQUEST,
            "Default group resources are not allowed.",
        ),
    ],
)
def test_a_wrong_change_is_refused_and_its_neighbour_is_made(
    wrong: ConfigChange, code: ErrorCode, sentence: str
) -> None:
    image = with_topic(with_topic(cluster(), "t"), "other")
    other = ConfigResource(ResourceType.TOPIC, "other")
    image, outcomes = alter(image, wrong, change(other, ("segment.ms", SET, "5")))
    assert outcomes == [Outcome(code, sentence), DONE]
    assert image.topics["t"].configs == {}
    assert image.topics["other"].configs == {"segment.ms": "5"}


def test_a_resource_named_twice_is_refused_both_times() -> None:
    image = with_topic(cluster(), "t")
    image, outcomes = alter(image, change(TOPIC, ("segment.ms", SET, "5")), change(TOPIC, ("segment.ms", SET, "6")))
    assert outcomes == [Outcome(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert image.topics["t"].configs == {}


def test_validate_only_changes_nothing() -> None:
    image = with_topic(cluster(), "t")
    event = AlterConfigs((change(TOPIC, ("segment.ms", SET, "5")),), validate_only=True)
    decision = controller().decide(image, event)
    assert decision.reply[0].outcome == DONE
    assert decision.steps == ()
