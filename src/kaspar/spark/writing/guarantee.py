"""The delivery guarantee of a write: the interface between encoding rows and publishing them.

A `Guarantee` is created on the driver and pickled to the tasks. In a task it begins a `TaskWriter`, which accepts whole
record batches. Only the message that finish() returns reaches `publish` or `abort` on the driver, which run in another
process.

Spark creates writers on the driver in processes that may be new: code that only tasks need is loaded in tasks.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import WriterCommitMessage

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.delivery_terms import TopicPartitions


class TaskWriter(Protocol):
    """One attempt of one task. It cannot write after finish() or abandon()."""

    def partitions_of(self, topic: str, at_least: int = 1) -> "TopicPartitions":
        """The partitions of a topic. A missing topic is created if the broker allows it. If fewer than `at_least` are
        known, metadata is refreshed."""

    def send(self, batches: Sequence["tuple[TopicPartition, memoryview]"]) -> None:
        """Take ownership of record batches without producer identity (records/identity.py). May block until there is
        room for them."""

    def finish(self, rows: int) -> WriterCommitMessage:
        """Wait until everything sent is stored. `rows` is the number of rows of the task."""

    @property
    def end_offsets(self) -> "Mapping[TopicPartition, int]":
        """After finish(): for each partition that was written to, the offset after the last record that was stored.
        NO_OFFSET if the broker did not report it; empty if the batch was already published, and nothing was stored."""

    def abandon(self) -> None:
        """Release everything after the task has failed, without waiting for a broker."""


class Guarantee(Protocol):
    def begin(self) -> TaskWriter:
        """Called in a task, before its first row."""

    def publish(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Called on the driver, when all tasks have finished."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Called on the driver, when a task has finally failed: its message is None."""
