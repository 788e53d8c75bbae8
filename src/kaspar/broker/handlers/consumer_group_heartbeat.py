"""ConsumerGroupHeartbeat: a member of the consumer protocol (KIP-848) joins, stays alive, or leaves."""

from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.coordination.clients import DescribesOf, client_of
from kaspar.broker.coordination.groups import Groups
from kaspar.broker.coordination.tickets import Response
from kaspar.broker.services import CurrentSettings, Threads
from kaspar.coordination import Decision, Now
from kaspar.groups.consumer.patterns import problem_with
from kaspar.groups.consumer.requests import check_request, heartbeat_refused
from kaspar.groups.group import GroupClient
from kaspar.groups.shard import GroupShard
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kaspar.protocol.schema import Message

_MESSAGES: Final = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}


class ConsumerGroupHeartbeatHandler:
    def __init__(
        self, groups: Groups, settings: CurrentSettings, threads: Threads, describes_of: DescribesOf | None = None
    ) -> None:
        self._groups = groups
        self._describes_of = describes_of
        self._settings = settings
        self._threads = threads

    def __call__(self, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> HandlerResult:
        if not self._groups.serves_consumer_protocol:
            message = "The cluster does not support the consumer protocol."
            return heartbeat_refused(ErrorCode.UNSUPPORTED_VERSION, message)
        try:
            check_request(request, context.version, self._settings.config.group_consumer_assignors)
        except Refused as refusal:
            return heartbeat_refused(refusal.code, refusal.message)
        client = client_of(context, may_be_new=not request.member_id, describes_of=self._describes_of)
        if request.subscribed_topic_regex:
            return self._submit_with_pattern(request, request.subscribed_topic_regex, client)
        return self._submit(request, client)

    def _submit(self, request: ConsumerGroupHeartbeatRequest, client: GroupClient) -> Response:
        def decide(shard: GroupShard, now: Now) -> Decision:
            try:
                return shard.consumer_heartbeat(request, client, now)
            except Refused as refusal:
                return Decision(response=heartbeat_refused(refusal.code, refusal.message))

        return self._groups.runtime.submit(request.group_id, decide, _refused)

    async def _submit_with_pattern(
        self, request: ConsumerGroupHeartbeatRequest, pattern: str, client: GroupClient
    ) -> Message:
        """Compile the pattern in a thread, because that may take long; then the coordinator finds the result cached."""
        await self._threads.run_blocking(problem_with, pattern)
        response = self._submit(request, client)
        return response if isinstance(response, Message) else await response


def _refused(code: ErrorCode) -> Message:
    return heartbeat_refused(code, _MESSAGES.get(code))
