"""Topics that are created, changed and deleted: neither a name given twice nor an image that is behind gets past the
guards.
"""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from kaspar.acls import AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ZERO_UUID, random_uuid
from kaspar.broker.authorization.guards import Call
from kaspar.broker.authorization.topics import DELETE_TOPICS
from kaspar.metadata.image import ClusterImage
from kaspar.network.api import RequestContext
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.unit.broker.authorization.test_requests import ALICE, ROOT, client, secured
from tests.unit.broker.running import create_topic, run
from tests.unit.broker.test_quotas import set_quota

USERS = (("user", None),)


def test_a_topic_that_is_named_twice_is_neither_created_nor_given_partitions(tmp_path: Path) -> None:
    """Also where the quota has room for the partitions of the first of the two alone, and for those who may."""

    async def scenario() -> None:
        async with secured(tmp_path, controller_quota_window_num="2") as broker:
            await create_topic(broker, "old")
            await set_quota(broker, USERS, controller_mutation_rate=1)
            for principal in (ALICE, ROOT):
                asking = client(broker, principal)
                new = CreatableTopic(name="new", num_partitions=5, replication_factor=1, assignments=(), configs=())
                asking.send(CreateTopicsRequest(topics=(new, new)), version=6)
                created = await asking.response(CreateTopicsResponse)
                assert [each.error_code for each in created.topics] == [ErrorCode.INVALID_REQUEST]
                more = CreatePartitionsTopic(name="old", count=6, assignments=None)
                asking.send(
                    CreatePartitionsRequest(topics=(more, more), timeout_ms=1000, validate_only=False), version=3
                )
                grown = await asking.response(CreatePartitionsResponse)
                assert [each.error_code for each in grown.results] == [ErrorCode.INVALID_REQUEST]
            assert "new" not in broker.images.current.topics
            assert len(broker.images.current.topics["old"].partitions) == 1

    run(scenario())


class Describer:
    """May describe topics, and nothing else."""

    def is_authorized(self, operation: AclOperation, resource_type: ResourceType, name: str, **_: Any) -> bool:
        return operation is AclOperation.DESCRIBE


class Images:
    current = ClusterImage("c")


def test_what_this_broker_does_not_know_yet_is_not_left_to_the_controller_without_delete() -> None:
    context = RequestContext(ApiKey.DELETE_TOPICS, 6, 1, "client", "127.0.0.1:1", "L", ALICE)
    handled = []
    caller: Any = Describer()

    def handler(context: RequestContext, request: Any) -> DeleteTopicsResponse:
        handled.append(request)
        return DeleteTopicsResponse(responses=())

    call = Call(caller, context, Images(), handler)
    topics = DeleteTopicState(name="new", topic_id=ZERO_UUID), DeleteTopicState(name=None, topic_id=random_uuid())
    response = DELETE_TOPICS(call, DeleteTopicsRequest(topic_names=("newer",), topics=topics, timeout_ms=1000))
    assert not isinstance(response, Awaitable)
    assert isinstance(response, DeleteTopicsResponse)
    assert not handled
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in response.responses] == [unknown, unknown, ErrorCode.UNKNOWN_TOPIC_ID]
