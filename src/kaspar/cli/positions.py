"""Positions in partitions, as users specify them: start or earliest, end or latest, an offset, or a time such as
'10 minutes ago'."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kaspar.cli.failures import WrongUsage

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.admin.session import Admin


def find_offsets(admin: "Admin", partitions: "Sequence[TopicPartition]", position: str) -> "dict[TopicPartition, int]":
    """The offset for the position in each partition. A given offset may be outside the partition's bounds."""
    from kaspar.cli.records.times import MIN_EPOCH_MS
    from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
    from kaspar.client.offsets import offsets_at

    match position:
        case "start" | "earliest":
            return offsets_at(admin.client, partitions, EARLIEST_TIMESTAMP)
        case "end" | "latest":
            return offsets_at(admin.client, partitions, LATEST_TIMESTAMP)
    if position.isdecimal() and int(position) < MIN_EPOCH_MS:
        return dict.fromkeys(partitions, int(position))
    found = offsets_at(admin.client, partitions, _time(position))
    behind = [where for where, offset in found.items() if offset < 0]
    return found | offsets_at(admin.client, behind, LATEST_TIMESTAMP)


def _time(position: str) -> int:
    from kaspar.cli.records.times import parse_time

    try:
        return parse_time(position, datetime.now().astimezone())
    except ValueError as problem:
        raise WrongUsage(f"{problem}; or start, end, or an offset") from None
