"""ConsumerGroupHeartbeat: a member of the consumer protocol (KIP-848) joins, lives, or leaves.

Most have nothing to say but that they live: those take no ticket and wait for nothing.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.broker.handlers.group_client import client_of
from kaspar.groups.consumer_requests import check_request, heartbeat_refused
from kaspar.groups.group import Client
from kaspar.groups.patterns import problem_with
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


def handle(broker: "Broker", context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
    if not broker.groups.serves_consumer_protocol:
        return heartbeat_refused(ErrorCode.UNSUPPORTED_VERSION, "This cluster has no consumer protocol.")
    client = client_of(context, may_be_new=not request.member_id)
    try:
        check_request(request, context.version, broker.config.group_consumer_assignors)
        shard = broker.groups.runtime.shard_of(request.group_id)
        response = shard.consumer_heartbeat_at_once(request, client, broker.now())
    except Refused as refusal:
        return heartbeat_refused(refusal.code, refusal.message)
    if response is not None:
        return response
    if request.subscribed_topic_regex:
        return _submit_with_pattern(broker, request, client)
    return _submit(broker, request, client)


def _submit(broker: "Broker", request: ConsumerGroupHeartbeatRequest, client: Client) -> Message | Awaitable[Message]:
    return broker.groups.runtime.submit(
        request.group_id,
        lambda shard, ticket, now: shard.consumer_heartbeat(request, client, ticket, now),
        heartbeat_refused,
    )


async def _submit_with_pattern(broker: "Broker", request: ConsumerGroupHeartbeatRequest, client: Client) -> Message:
    """A pattern may take long to compile. What a thread has found out then, the coordinator knows at once."""
    assert request.subscribed_topic_regex is not None
    await broker.run_blocking(problem_with, request.subscribed_topic_regex)
    answer = _submit(broker, request, client)
    return answer if isinstance(answer, Message) else await answer
