"""OffsetCommit: commits offsets for a group. Partitions that do not exist are refused separately; an error of the
coordinator (an unknown member, or another generation) is returned for all others.
"""

import uuid
from dataclasses import replace
from typing import Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.coordination.groups import GroupRuntime
from kaspar.broker.handlers.combined import combined
from kaspar.broker.handlers.known_partitions import split_by_existence
from kaspar.groups.offsets.commits import DecodedCommit
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kaspar.protocol.schema import Message

FIRST_WITH_TOPIC_ID: Final = 10


class OffsetCommitHandler:
    def __init__(self, groups: GroupRuntime, images: ImageSource) -> None:
        self._groups = groups
        self._images = images

    def __call__(self, context: RequestContext, request: OffsetCommitRequest) -> HandlerResult:
        known, refusals = _split(self._images.current, context.version, request)
        if not known.topics:
            return OffsetCommitResponse(topics=refusals)
        commit = DecodedCommit(known, context.version)
        response = self._groups.submit(
            known.group_id,
            lambda shard, now: shard.commit(commit, now),
            lambda code: OffsetCommitResponse(
                topics=tuple(_refused(topic, topic.partitions, code) for topic in known.topics)
            ),
        )
        return combined([response], lambda parts: _join(refusals, parts[0])) if refusals else response


def _split(
    image: ClusterImage, version: int, request: OffsetCommitRequest
) -> tuple[OffsetCommitRequest, tuple[OffsetCommitResponseTopic, ...]]:
    """The part of the request that may be committed, with name and id of each topic, and the refusals of the rest."""
    topics = []
    refusals = []
    by_id = version >= FIRST_WITH_TOPIC_ID
    for named in request.topics:
        topic = image.topic_by_id(named.topic_id) if by_id else image.topics.get(named.name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refusals.append(_refused(named, named.partitions, code))
            continue
        known, unknown = split_by_existence(topic, named.partitions)
        found = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=known)
        if unknown:
            refusals.append(_refused(found, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if known:
            topics.append(found)
    known_request = OffsetCommitRequest(  # `replace` would take longer than all of the above
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        retention_time_ms=request.retention_time_ms,
        group_instance_id=request.group_instance_id,
        topics=tuple(topics),
    )
    return known_request, tuple(refusals)


def _refused(
    topic: OffsetCommitRequestTopic, partitions: tuple[OffsetCommitRequestPartition, ...], code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code) for each in partitions
        ),
    )


def _join(refusals: tuple[OffsetCommitResponseTopic, ...], response: Message) -> OffsetCommitResponse:
    """Combine refusals and response into one response, in which every topic occurs once."""
    assert isinstance(response, OffsetCommitResponse)
    topics: dict[tuple[str, uuid.UUID], OffsetCommitResponseTopic] = {}
    for topic in (*refusals, *response.topics):
        key = (topic.name, topic.topic_id)
        before = topics[key].partitions if key in topics else ()
        topics[key] = replace(topic, partitions=before + topic.partitions)
    return OffsetCommitResponse(topics=tuple(topics.values()))
