"""CreatePartitions and the config APIs over the wire: each resource type and operation, and what outlives a restart."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID
from kaspar.client import Connection
from kaspar.config import AlterOperation, ConfigSource
from kaspar.controller.events import ResourceType
from kaspar.protocol.messages import alter_configs, incremental_alter_configs
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kaspar.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kaspar.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kaspar.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kaspar.protocol.schema import Message
from kaspar.testing import Broker

SET, DELETE, APPEND = AlterOperation.SET, AlterOperation.DELETE, AlterOperation.APPEND


R = TypeVar("R", bound=Message)


def ask(connection: Connection, request: Message, kind: type[R]) -> R:
    response = connection.request(request)
    assert isinstance(response, kind)
    return response


def connect(broker: Broker) -> Connection:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Connection(host, int(port))


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Broker() as broker, connect(broker) as connection:
        create_topic(connection, "t")
        yield connection


def create_topic(connection: Connection, name: str, partitions: int = 1, **configs: str) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key.replace("_", "."), value=configs[key]) for key in configs),
    )
    (result,) = ask(
        connection,
        CreateTopicsRequest(topics=(topic,), timeout_ms=5000, validate_only=False),
        CreateTopicsResponse,
    ).topics
    assert result.error_code == ErrorCode.NONE


def alter(
    connection: Connection, kind: int, name: str, *operations: tuple[str, int, str | None]
) -> tuple[int, str | None]:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ),
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = ask(connection, request, incremental_alter_configs.IncrementalAlterConfigsResponse).responses
    return response.error_code, response.error_message


def describe(
    connection: Connection, kind: int, name: str, *keys: str, documentation: bool = False
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True, include_documentation=documentation)
    (result,) = ask(connection, request, DescribeConfigsResponse).results
    return result


def only(result: DescribeConfigsResult) -> DescribeConfigsResourceResult:
    assert result.error_code == ErrorCode.NONE
    (config,) = result.configs
    return config


def test_a_topics_settings_change_and_outlive_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker, connect(broker) as connection:
        create_topic(connection, "t", retention_ms="5000")
        assert alter(
            connection, ResourceType.TOPIC, "t", ("segment.ms", SET, "7000"), ("cleanup.policy", APPEND, "compact")
        ) == (ErrorCode.NONE, None)
        assert alter(connection, ResourceType.TOPIC, "t", ("retention.ms", DELETE, None))[0] == ErrorCode.NONE
        assert (
            alter(connection, ResourceType.BROKER, "", ("log.flush.interval.messages", SET, "9"))[0] == ErrorCode.NONE
        )
    with Broker(data_dir=tmp_path) as broker, connect(broker) as connection:
        configs = {config.name: config for config in describe(connection, ResourceType.TOPIC, "t").configs}
        assert configs["segment.ms"].value == "7000"
        assert configs["segment.ms"].config_source == ConfigSource.TOPIC_CONFIG
        assert configs["cleanup.policy"].value == "delete,compact"
        assert configs["retention.ms"].config_source == ConfigSource.DEFAULT_CONFIG
        assert configs["flush.messages"].value == "9"
        assert configs["flush.messages"].config_source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def test_the_older_alter_configs_replaces_everything(connection: Connection) -> None:
    alter(connection, ResourceType.TOPIC, "t", ("segment.ms", SET, "7000"))
    resource = alter_configs.AlterConfigsResource(
        resource_type=ResourceType.TOPIC,
        resource_name="t",
        configs=(alter_configs.AlterableConfig(name="retention.ms", value="5000"),),
    )
    (response,) = ask(
        connection,
        alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=False),
        alter_configs.AlterConfigsResponse,
    ).responses
    assert response.error_code == ErrorCode.NONE
    result = describe(connection, ResourceType.TOPIC, "t", "segment.ms", "retention.ms")
    sources = {config.name: config.config_source for config in result.configs}
    assert sources == {"segment.ms": ConfigSource.DEFAULT_CONFIG, "retention.ms": ConfigSource.TOPIC_CONFIG}


def test_documentation_comes_when_asked_for(connection: Connection) -> None:
    silent = only(describe(connection, ResourceType.TOPIC, "t", "segment.ms"))
    described = only(describe(connection, ResourceType.TOPIC, "t", "segment.ms", documentation=True))
    assert silent.documentation is None
    assert described.documentation


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (ResourceType.TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (ResourceType.BROKER, "9", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string"),
        (ResourceType.BROKER, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (ResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (ResourceType.CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be"),
        (77, "x", ErrorCode.INVALID_REQUEST, "This most likely occurs"),
    ],
)
def test_what_cannot_be_described_is_refused(
    connection: Connection, kind: int, name: str, code: ErrorCode, message: str
) -> None:
    result = describe(connection, kind, name)
    assert (result.error_code, result.configs) == (code, ())
    assert (result.error_message or "").startswith(message)


def test_levels_of_the_log_change_and_come_back(connection: Connection) -> None:
    logger = "kaspar.controller.shell"
    assert alter(connection, ResourceType.BROKER_LOGGER, "1", (logger, SET, "ERROR")) == (ErrorCode.NONE, None)
    assert only(describe(connection, ResourceType.BROKER_LOGGER, "1", logger)).value == "ERROR"
    assert alter(connection, ResourceType.BROKER_LOGGER, "1", (logger, DELETE, None)) == (ErrorCode.NONE, None)
    root = only(describe(connection, ResourceType.BROKER_LOGGER, "1", "root")).value
    assert only(describe(connection, ResourceType.BROKER_LOGGER, "1", logger)).value == root


@pytest.mark.parametrize(
    ("name", "operation", "value", "code", "message"),
    [
        ("nonsense", SET, "DEBUG", ErrorCode.INVALID_CONFIG, "Logger nonsense does not exist!"),
        ("root", SET, "LOUD", ErrorCode.INVALID_CONFIG, "Cannot set the log level of root to LOUD"),
        ("root", DELETE, None, ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        ("root", APPEND, "DEBUG", ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER"),
        ("root", SET, None, ErrorCode.INVALID_REQUEST, "Null value not supported for : root"),
    ],
)
def test_wrong_levels_are_refused(
    connection: Connection, name: str, operation: int, value: str | None, code: ErrorCode, message: str
) -> None:
    refused, sentence = alter(connection, ResourceType.BROKER_LOGGER, "1", (name, operation, value))
    assert refused == code
    assert (sentence or "").startswith(message)


def test_config_resources_are_listed(connection: Connection) -> None:
    alter(connection, ResourceType.GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    alter(connection, ResourceType.CLIENT_METRICS, "s", ("interval.ms", SET, "1000"))

    def listed(*kinds: int) -> set[tuple[int, str]]:
        response = ask(connection, ListConfigResourcesRequest(resource_types=kinds), ListConfigResourcesResponse)
        assert response.error_code == ErrorCode.NONE
        return {(resource.resource_type, resource.resource_name) for resource in response.config_resources}

    everything = {
        (ResourceType.TOPIC, "t"),
        (ResourceType.BROKER, "1"),
        (ResourceType.BROKER_LOGGER, "1"),
        (ResourceType.GROUP, "g"),
        (ResourceType.CLIENT_METRICS, "s"),
    }
    assert listed() == everything
    assert listed(ResourceType.TOPIC, ResourceType.GROUP) == {(ResourceType.TOPIC, "t"), (ResourceType.GROUP, "g")}
    unknown = ask(connection, ListConfigResourcesRequest(resource_types=(77,)), ListConfigResourcesResponse)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_partitions_are_added(connection: Connection) -> None:
    def grow(count: int, *, validate_only: bool = False) -> tuple[int, str | None]:
        topic = CreatePartitionsTopic(name="t", count=count, assignments=None)
        request = CreatePartitionsRequest(topics=(topic,), timeout_ms=5000, validate_only=validate_only)
        (result,) = ask(connection, request, CreatePartitionsResponse).results
        return result.error_code, result.error_message

    assert grow(3, validate_only=True) == (ErrorCode.NONE, None)
    assert grow(3) == (ErrorCode.NONE, None)
    assert grow(3) == (ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s).")


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_older_clients_get_a_code_they_know_for_disabled_deletion(version: int, code: ErrorCode) -> None:
    with Broker(overrides={"delete.topic.enable": "false"}) as broker, connect(broker) as connection:
        create_topic(connection, "t")
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name="t", topic_id=ZERO_UUID),) if version >= 6 else (),
            topic_names=("t",) if version < 6 else (),
            timeout_ms=5000,
        )
        response = connection.request(request, version=version)
        assert isinstance(response, DeleteTopicsResponse)
        assert [result.error_code for result in response.responses] == [code]
