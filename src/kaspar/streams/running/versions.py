"""The versions of the state with which the partitions of a sub-topology start a batch, on the driver.

A version is named by its ends: for each store, the offset after its last changelog record (stores/disk). The ends of a
batch are reported by its tasks, and become current when the batch is published. At a start, they are the ends of the
changelogs themselves, after all transactions of earlier runs have ended there: everything before them is then decided.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from kaspar.base.ids import NO_OFFSET, TopicPartition
from kaspar.client.cluster import LATEST_TIMESTAMP, Client
from kaspar.client.offsets import list_offsets
from kaspar.protocol.isolation_level import READ_COMMITTED, READ_UNCOMMITTED
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.reports import TaskReport

_PAUSE_S: Final = 0.02
_LONGEST_WAIT_S: Final = 120.0

Ends = dict[str, int]


class Versions:
    """The versions of all partitions of a sub-topology."""

    def __init__(self, changelogs: Mapping[str, str], partitions: int) -> None:
        """`changelogs` are the changelog topics by store name, for the stores that have one."""
        self._changelogs = changelogs
        self._partitions = partitions
        self.is_known = False
        self.ends: dict[int, Ends] = {}
        self.meta: dict[int, dict[str, int]] = {}
        """Numbers that only increase, as far as this run knows them; the state on disk has the others."""

    def forget(self) -> None:
        self.is_known = False

    def read(self, client: Client) -> None:
        """Read the versions from the changelogs, after waiting until no transaction is open in them."""
        where = self._all_changelogs()
        self._set(_settled_ends(client, where) if where else {})
        self.is_known = True

    def look_up(self, client: Client) -> None:
        """Look up the versions that are decided now. Used to read the state before a batch makes the versions known."""
        where = self._all_changelogs()
        found = list_offsets(client, where, isolation_level=READ_COMMITTED) if where else {}
        self._set({each: listed.offset for each, listed in found.items()})

    def _all_changelogs(self) -> dict[TopicPartition, int]:
        return {
            TopicPartition(topic, partition): LATEST_TIMESTAMP
            for topic in self._changelogs.values()
            for partition in range(self._partitions)
        }

    def _set(self, found: Mapping[TopicPartition, int]) -> None:
        self.ends = {
            partition: {store: found[TopicPartition(topic, partition)] for store, topic in self._changelogs.items()}
            for partition in range(self._partitions)
        }

    def advance(self, reports: Iterable[TaskReport]) -> None:
        """Apply the reports of a published batch."""
        for report in reports:
            for partition, result in report.partitions.items():
                if NO_OFFSET in result.ends.values():
                    self.is_known = False  # a broker did not report the offset of a stored record
                self.ends.setdefault(partition, {}).update(result.ends)
                meta = self.meta.setdefault(partition, {})
                for name, number in result.meta.items():
                    meta[name] = max(number, meta.get(name, number))


def _settled_ends(client: Client, where: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while True:
        stable = list_offsets(client, where, isolation_level=READ_COMMITTED)
        written = list_offsets(client, where, isolation_level=READ_UNCOMMITTED)
        behind = [each for each in where if stable[each].offset < written[each].offset]
        if not behind:
            return {each: listed.offset for each, listed in stable.items()}
        if time.monotonic() > deadline:
            raise StreamsError(
                f"The changelog {min(behind)} has an open transaction that is not ending, so the state cannot be read: "
                "`kaspar spark transactions` shows it, and `--query ID --end` ends it if it was left behind by a run "
                "whose checkpoint is gone. Otherwise another program is writing to this topic."
            )
        time.sleep(_PAUSE_S)
