"""Why records are gone before they were read, in a sentence; and whether the query stops for it or goes on.

Gaps inside a log are no loss: compaction and the markers of transactions leave them. Lost are records before the first
offset of the log (retention or DeleteRecords removed them), beyond its end (it was truncated), and all of a topic that
was deleted, even if another has its name by now: a topic's id tells them apart.
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
_ONE_BATCH = 1  # bytes: a broker gives a whole batch all the same


class DataLost(KasparError):
    """Records that were to be read are gone, and failOnDataLoss says to stop then."""


@dataclass(frozen=True, slots=True)
class StartOfLog:
    """What can be seen at the start of a log whose first records are gone."""

    log_start_offset: int
    first_base_offset: int | None = None
    """The base offset of the batch that holds the log's first offset; None if there is no batch."""
    settings: Mapping[str, str] | None = None
    """Of the topic, those of retention; None if nobody tells."""


def removed(partition: TopicPartition, asked: int, start: StartOfLog) -> str:
    """Of records before the start of the log. Retention drops whole segments; DeleteRecords also ends in mid-batch."""
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
    told = ", ".join(f"{name}={start.settings[name]}" for name in _RETENTION_SETTINGS[1:] if name in start.settings)
    return f"{gone}retention removed them before they were read ({told}), unless somebody used DeleteRecords."


def made_anew(topic: str, old: UUID, new: UUID) -> str:
    was = "" if old == ZERO_UUID else f"was {uuid_to_text(old)} and "
    return (
        f"Topic {topic!r} was deleted and made anew (its id {was}is {uuid_to_text(new)} now): "
        "what the old one still held is gone."
    )


def truncated(partition: TopicPartition, asked: int, log_end_offset: int) -> str:
    return (
        f"{partition} was read up to offset {asked} and ends at {log_end_offset} now: its log was truncated, as an "
        "unclean leader election does, or the topic was deleted and made anew."
    )


def not_there(partition: TopicPartition, asked: int, log_start_offset: int, log_end_offset: int) -> str:
    """Of an offset that an option names."""
    return f"Offset {asked} of {partition} does not exist: its log goes from {log_start_offset} to {log_end_offset}."


def deleted(partitions: list[TopicPartition]) -> str:
    return (
        f"{', '.join(map(str, partitions))} cannot be found any more: the topic was deleted, and what it held is gone."
    )


def unsubscribed(partitions: list[TopicPartition], subscription: object) -> str:
    return (
        f"The checkpoint has offsets of {', '.join(map(str, partitions))}, which the query does not read any more "
        f"(its options say: {subscription})."
    )


def report(sentence: str, *, fail_on_data_loss: bool, goes_on: str) -> None:
    """Stop the query with the sentence, or tell it in one line of the log together with where the query goes on."""
    if fail_on_data_loss:
        raise DataLost(f"{sentence} The query stops since 'failOnDataLoss' is true; set to false, it {goes_on}.")
    log.warning(f"{sentence} The query {goes_on}.")


def start_of_log(client: "Client", partition: TopicPartition, log_start_offset: int) -> StartOfLog:
    """Look at the log and its topic's settings. What cannot be seen is left out: this only makes a sentence better."""
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
    answer = client.request(
        describe_configs.DescribeConfigsRequest(resources=(resource,)), describe_configs.DescribeConfigsResponse
    )
    result = answer.results[0]
    if result.error_code != ErrorCode.NONE:
        return None
    return {each.name: each.value for each in result.configs if each.value is not None}
