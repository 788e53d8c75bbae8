"""Without a controller every resource of a request is refused, and the connection stays."""

import asyncio
from pathlib import Path
from typing import Any

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.broker.handlers.alter_configs import AlterConfigsHandler
from kaspar.broker.handlers.create_partitions import CreatePartitionsHandler
from kaspar.broker.handlers.create_topics import CreateTopicsHandler
from kaspar.broker.handlers.delete_topics import DeleteTopicsHandler
from kaspar.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from kaspar.broker.handlers.update_features import UpdateFeaturesHandler
from kaspar.broker.request_quotas import RequestQuotas
from kaspar.broker.services import CurrentSettings
from kaspar.config import BrokerSettings
from kaspar.controller.channel import Channel, ControllerChannel
from kaspar.controller.events import ControllerEvent
from kaspar.metadata.images import FollowedImage
from kaspar.network.api import RequestContext
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from kaspar.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from kaspar.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kaspar.protocol.messages.update_features import UpdateFeaturesRequest
from tests.unit.broker.running import run, running

TOPIC = 2


def context(key: ApiKey) -> RequestContext:
    return RequestContext(key, 1, 7, "client", "127.0.0.1:1", "PLAINTEXT")


HERE = BrokerId(1)
SETTINGS = CurrentSettings(BrokerSettings.of({"node.id": "1"}))
IMAGES = FollowedImage(HERE, on_bug=lambda _: None)
NO_QUOTAS = RequestQuotas(SETTINGS)


async def codes_with(controller: ControllerChannel) -> list[int]:
    """What each handler responds to a request for one resource."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    created = await CreateTopicsHandler(controller, SETTINGS, NO_QUOTAS)(
        context(ApiKey.CREATE_TOPICS), CreateTopicsRequest(topics=(topic,))
    )
    deleted = await DeleteTopicsHandler(controller, IMAGES, NO_QUOTAS)(
        context(ApiKey.DELETE_TOPICS), DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000)
    )
    grown = await CreatePartitionsHandler(controller, IMAGES, NO_QUOTAS)(
        context(ApiKey.CREATE_PARTITIONS),
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name="t", count=2, assignments=None),),
            timeout_ms=1000,
            validate_only=False,
        ),
    )
    altered = await AlterConfigsHandler(HERE, controller)(
        context(ApiKey.ALTER_CONFIGS),
        AlterConfigsRequest(
            resources=(AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=()),),
            validate_only=False,
        ),
    )
    incremental = await IncrementalAlterConfigsHandler(HERE, controller)(
        context(ApiKey.INCREMENTAL_ALTER_CONFIGS),
        IncrementalAlterConfigsRequest(
            resources=(IncrementalResource(resource_type=TOPIC, resource_name="t", configs=()),),
            validate_only=False,
        ),
    )
    updated = await UpdateFeaturesHandler(controller)(
        context(ApiKey.UPDATE_FEATURES), UpdateFeaturesRequest(feature_updates=())
    )
    return [
        created.topics[0].error_code,
        deleted.responses[0].error_code,
        grown.results[0].error_code,
        altered.responses[0].error_code,
        incremental.responses[0].error_code,
        updated.error_code,
    ]


def test_every_change_is_refused_without_a_controller() -> None:
    async def scenario() -> None:
        assert await codes_with(Channel(FollowedImage(HERE, on_bug=print))) == [ErrorCode.NOT_CONTROLLER] * 6

    asyncio.run(scenario())


def test_every_change_is_refused_if_the_metadata_store_is_full() -> None:
    class Full:
        async def submit(self, event: ControllerEvent[Any]) -> Any:
            raise Refused(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")

        commit = submit

    assert asyncio.run(codes_with(Full())) == [ErrorCode.KAFKA_STORAGE_ERROR] * 6


def test_every_change_is_refused_when_this_broker_is_no_longer_the_controller(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            assert broker.controller_shell is not None
            await broker.controller_shell.stop()
            assert await codes_with(broker.controller) == [ErrorCode.NOT_CONTROLLER] * 6

    run(scenario())
