"""Deletes topics."""

from collections.abc import Collection

from kaspar.base.errors import Refused
from kaspar.base.ids import ZERO_UUID
from kaspar.client.admin.session import Admin, common_code, refusal
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState


def delete_topics(admin: Admin, names: Collection[str]) -> dict[str, Refused | None]:
    """Delete topics. Returns for each why it was not deleted, or None. If a response is lost and the request is sent
    again, a topic may be refused with UNKNOWN_TOPIC_OR_PARTITION although this call has deleted it."""
    if not names:
        return {}
    request = DeleteTopicsRequest(
        topic_names=tuple(names),
        topics=tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names),
        timeout_ms=admin.timeout_ms,
    )
    response = admin.ask_controller(
        "deleteTopics",
        request,
        DeleteTopicsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.responses),
    )
    return {topic.name or "": refusal(topic.error_code, topic.error_message) for topic in response.responses}
