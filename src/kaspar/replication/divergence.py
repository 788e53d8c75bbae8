"""Finds where the logs of a leader and a follower diverge, by comparing leader epochs and their end offsets.

The leader looks for it when a follower fetches (KIP-595), and the follower truncates there (KIP-101, KIP-279).
"""

from typing import NamedTuple, Protocol

from kaspar.base.errors import ErrorCode, Refused
from kaspar.storage import EpochEnd


class EpochLog(Protocol):
    """The part of a log's interface that is needed here."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def latest_epoch(self) -> int: ...
    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None: ...


class Diverging(NamedTuple):
    """The largest epoch that the leader's log may have in common with the follower's, and its end on the leader."""

    epoch: int
    end_offset: int


def diverging_epoch(log: EpochLog, last_fetched_epoch: int, fetch_offset: int) -> Diverging | None:
    """On the leader: return where a reader's log diverges, if the leader lacks the record that was read last."""
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end is None or fetch_offset < log.log_start_offset:
        raise Refused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"it is not known whether epoch {last_fetched_epoch} ends after {fetch_offset}",
        )
    if end.epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return Diverging(end.epoch, end.end_offset)
    return None


def truncation_offset(log: EpochLog, diverging: Diverging) -> int:
    """On the follower: the offset to which it truncates its log. If it lacks the epoch that the leader named, it
    truncates to the end of the largest smaller one that it has, and the next fetch compares again (KIP-279).
    """
    end = log.log_end_offset
    mine = log.end_offset_for_epoch(diverging.epoch)
    if mine is None:
        return min(diverging.end_offset, end)
    if mine.epoch == diverging.epoch:
        return min(diverging.end_offset, mine.end_offset, end)
    return min(mine.end_offset, end)
