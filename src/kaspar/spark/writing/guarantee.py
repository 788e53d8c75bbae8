"""The delivery guarantee of a write: the interface between what encodes rows and what publishes them.

A `Guarantee` is created on the driver and pickled to the tasks. In a task it begins a `TaskWriter`, which takes whole
record batches. The message that finish() returns reaches `publish` or `abort` on the driver, in another process, and
nothing else does.

Spark creates writers on the driver in processes that may be new: what only tasks need is loaded in tasks.
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
        """Creates a missing topic if the broker allows it. Refreshes metadata if fewer than `at_least` are known."""

    def send(self, batches: Sequence["tuple[TopicPartition, memoryview]"]) -> None:
        """Take ownership of record batches without producer identity (records/identity.py). May block until there is
        room for them."""

    def finish(self, rows: int) -> WriterCommitMessage:
        """Wait until everything sent is stored. `rows` is the number of rows of the task."""

    @property
    def end_offsets(self) -> "Mapping[TopicPartition, int]":
        """After finish(): the offset after the last record that was stored in each partition that was written to.
        NO_OFFSET if the broker did not report it; empty if the batch was already published, and nothing was stored."""

    def abandon(self) -> None:
        """The task has failed: release everything, and wait for no broker."""


class Guarantee(Protocol):
    def begin(self) -> TaskWriter:
        """In a task, before its first row."""

    def publish(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver, when all tasks have finished."""

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver, when a task failed for good: its message is None."""
