"""Data loss: why records were deleted before they were read, and whether the query stops or continues.

Gaps inside a log are not a loss: compaction and transaction markers leave them. Lost are records before the log start
offset (removed by retention or DeleteRecords), beyond the log end offset (the log was truncated), and all of a topic
that was deleted, even if there is a new topic with its name, which has another topic id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes, Refused
from kaspar.base.ids import ZERO_UUID, TopicPartition, uuid_to_text
from kaspar.base.log import get_log
from kaspar.protocol.messages import describe_configs
from kaspar.records.batch import read_header

if TYPE_CHECKING:
    from kaspar.client import Client

log = get_log(__name__)

_TOPIC_RESOURCE = 2
_RETENTION_SETTINGS = ("cleanup.policy", "retention.ms", "retention.bytes")
_ONE_BATCH = 1  # bytes: brokers return a whole batch anyway (KIP-74)


class DataLost(KasparError):
    """Records that should have been read are gone, and failOnDataLoss is true."""


@dataclass(frozen=True, slots=True)
class StartOfLog:
    """The start of a log whose first records are gone."""

    log_start_offset: int
    first_base_offset: int | None = None
    """The base offset of the batch that holds the log's first offset; None if there is no batch."""
    settings: Mapping[str, str] | None = None
    """The topic's retention settings; None if they cannot be read."""


def removed(partition: TopicPartition, asked: int, start: StartOfLog) -> str:
    """The message for records before the log start offset. Retention drops whole segments, but DeleteRecords may end
    within a batch."""
    gone = f"The records of {partition} from offset {asked} to {start.log_start_offset - 1} are gone: "
    in_mid_batch = start.first_base_offset is not None and start.first_base_offset < start.log_start_offset
    if in_mid_batch:
        return f"{gone}DeleteRecords removed them (the log now starts inside a batch)."
    if start.settings is None:
        return f"{gone}retention or DeleteRecords removed them."
    retains_all = "delete" not in start.settings.get("cleanup.policy", "delete") or all(
        start.settings.get(name) == "-1" for name in ("retention.ms", "retention.bytes")
    )
    if retains_all:
        return f"{gone}DeleteRecords removed them (the topic has no retention)."
    settings = ", ".join(f"{name}={start.settings[name]}" for name in _RETENTION_SETTINGS[1:] if name in start.settings)
    return f"{gone}retention removed them before they were read ({settings}), unless DeleteRecords was used."


def recreated(topic: str, old: UUID, new: UUID) -> str:
    was = "" if old == ZERO_UUID else f"was {uuid_to_text(old)} and "
    return (
        f"Topic {topic!r} was deleted and recreated (its id {was}is {uuid_to_text(new)} now): the unread records of "
        "the old topic are gone."
    )


def truncated(partition: TopicPartition, asked: int, log_end_offset: int) -> str:
    return (
        f"{partition} was read up to offset {asked} but now ends at {log_end_offset}: its log was truncated, for "
        "example by an unclean leader election, or the topic was deleted and recreated."
    )


def not_there(partition: TopicPartition, asked: int, log_start_offset: int, log_end_offset: int) -> str:
    """The message for an offset that an option names and that does not exist."""
    return f"Offset {asked} of {partition} does not exist: its log goes from {log_start_offset} to {log_end_offset}."


def deleted(partitions: list[TopicPartition]) -> str:
    return (
        f"{', '.join(map(str, partitions))} no longer exists: the topic was deleted, and its unread records are gone."
    )


def unsubscribed(partitions: list[TopicPartition], subscription: object) -> str:
    return (
        f"The checkpoint has offsets of {', '.join(map(str, partitions))}, which the query no longer reads "
        f"({subscription})."
    )


def report(sentence: str, *, fail_on_data_loss: bool, otherwise: str) -> None:
    """Raise DataLost, or log the loss as a warning. `otherwise`: what the query does if it does not stop."""
    if fail_on_data_loss:
        raise DataLost(f"{sentence} The query stops because 'failOnDataLoss' is true; with false, it {otherwise}.")
    log.warning(f"{sentence} The query {otherwise}.")


def start_of_log(client: "Client", partition: TopicPartition, log_start_offset: int) -> StartOfLog:
    """Look up the log's first batch and its topic's settings. Failures are ignored: they only make the message less
    detailed."""
    return StartOfLog(
        log_start_offset, _first_base_offset(client, partition, log_start_offset), _settings(client, partition)
    )


def _first_base_offset(client: "Client", partition: TopicPartition, log_start_offset: int) -> int | None:
    try:
        fetched = client.fetch(*partition, log_start_offset, max_bytes=_ONE_BATCH, max_wait_ms=0)
        return read_header(fetched.records, 0).base_offset if fetched.records else None
    except (Refused, MalformedBytes):
        return None


def _settings(client: "Client", partition: TopicPartition) -> dict[str, str] | None:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=partition.topic, configuration_keys=_RETENTION_SETTINGS
    )
    response = client.request(
        describe_configs.DescribeConfigsRequest(resources=(resource,)), describe_configs.DescribeConfigsResponse
    )
    result = response.results[0]
    if result.error_code != ErrorCode.NONE:
        return None
    return {each.name: each.value for each in result.configs if each.value is not None}
