"""Where the metadata store takes no change at all, every resource of a request is told so, and the connection stays."""

from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import (
    RequestContext,
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from kaspar.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from kaspar.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.broker.running import run, running

TOPIC = 2


def context(key: ApiKey) -> RequestContext:
    return RequestContext(key, 1, 7, "client", "127.0.0.1:1", "PLAINTEXT")


def test_every_change_is_answered_when_this_broker_is_no_longer_the_controller(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await broker.controller.stop()
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
            created = await create_topics.handle(
                broker, context(ApiKey.CREATE_TOPICS), CreateTopicsRequest(topics=(topic,))
            )
            deleted = await delete_topics.handle(
                broker, context(ApiKey.DELETE_TOPICS), DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000)
            )
            grown = await create_partitions.handle(
                broker,
                context(ApiKey.CREATE_PARTITIONS),
                CreatePartitionsRequest(
                    topics=(CreatePartitionsTopic(name="t", count=2, assignments=None),),
                    timeout_ms=1000,
                    validate_only=False,
                ),
            )
            altered = await alter_configs.handle(
                broker,
                context(ApiKey.ALTER_CONFIGS),
                AlterConfigsRequest(
                    resources=(AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=()),),
                    validate_only=False,
                ),
            )
            incremental = await incremental_alter_configs.handle(
                broker,
                context(ApiKey.INCREMENTAL_ALTER_CONFIGS),
                IncrementalAlterConfigsRequest(
                    resources=(IncrementalResource(resource_type=TOPIC, resource_name="t", configs=()),),
                    validate_only=False,
                ),
            )
            codes = [
                created.topics[0].error_code,
                deleted.responses[0].error_code,
                grown.results[0].error_code,
                altered.responses[0].error_code,
                incremental.responses[0].error_code,
            ]
            assert codes == [ErrorCode.NOT_CONTROLLER] * 5

    run(scenario())
