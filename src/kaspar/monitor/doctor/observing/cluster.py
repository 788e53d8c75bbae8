"""Topics, reassignments, log directories and features."""

from collections.abc import Iterable

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.log_dirs import describe_log_dirs
from kaspar.client.admin.reassignments import list_reassignments
from kaspar.client.admin.session import Admin, refuse
from kaspar.client.admin.topics import TopicDescription, describe_topics_by_metadata
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.monitor.doctor.observation import FeaturesSeen, LogDirSeen
from kaspar.monitor.doctor.observing.parts import Parts
from kaspar.protocol.messages.api_versions import ApiVersionsResponse


def look_at_topics(admin: Admin) -> dict[str, TopicDescription]:
    """The topics that the caller may describe."""
    found = describe_topics_by_metadata(admin)
    return {name: topic for name, topic in found.items() if not isinstance(topic, Refused)}


def look_at_reassignments(admin: Admin) -> frozenset[TopicPartition]:
    return frozenset(list_reassignments(admin))


def look_at_log_dirs(admin: Admin, brokers: Iterable[int], parts: Parts) -> dict[int, tuple[LogDirSeen, ...]]:
    return parts.read_each("log directories", brokers, lambda broker_id: _log_dirs(admin, broker_id))


def _log_dirs(admin: Admin, broker_id: int) -> tuple[LogDirSeen, ...]:
    return tuple(
        LogDirSeen(
            each.path,
            each.error is not None,
            _known(each.total_bytes),
            _known(each.usable_bytes),
            {where: replica.partition_size for where, replica in each.replicas.items()},
        )
        for each in describe_log_dirs(admin, broker_id)
    )


def _known(size: int) -> int | None:
    return size if size >= 0 else None


def look_at_features(admin: Admin, brokers: Iterable[int], parts: Parts) -> dict[int, FeaturesSeen]:
    return parts.read_each("versions", brokers, lambda broker_id: _features(admin, broker_id))


def _features(admin: Admin, broker_id: int) -> FeaturesSeen:
    response = admin.ask_broker("describeFeatures", broker_id, API_VERSIONS_REQUEST, ApiVersionsResponse)
    refuse(response.error_code)
    return FeaturesSeen(
        {each.name: each.max_version for each in response.supported_features},
        {each.name: each.max_version_level for each in response.finalized_features},
        frozenset((each.api_key, each.max_version) for each in response.api_keys),
    )
