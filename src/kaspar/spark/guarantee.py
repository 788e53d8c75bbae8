"""How sure a write is: the seam between what encodes rows and what publishes them.

A `Guarantee` is made on the driver and pickled to the tasks. In a task it begins a `TaskWriter`, which takes
whole record batches; what that returns at its end reaches `publish` or `abort` on the driver, in another process, and
nothing else does. At least once is the short form of it: what a task has sent is published.

Spark makes writers on the driver in processes that may be new: what only tasks need is loaded in tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import WriterCommitMessage

from kaspar.spark.write_options import EXACTLY_ONCE, WriteOptions

if TYPE_CHECKING:
    from kaspar.base.ids import TopicPartition
    from kaspar.client.delivery_terms import TopicPartitions


@dataclass(frozen=True)
class RowsWritten(WriterCommitMessage):
    """A task's message where nothing is left to be done."""

    rows: int


class TaskWriter(Protocol):
    """One attempt of one task. After finish() or abandon() it is of no further use."""

    def partitions_of(self, topic: str, at_least: int = 1) -> "TopicPartitions":
        """A topic that is not there is made, if the broker does that. Asks anew if fewer than `at_least` are known."""

    def send(self, batches: Sequence["tuple[TopicPartition, memoryview]"]) -> None:
        """Take record batches without identity (records/identity.py), which are now the writer's. May wait until
        there is room for them."""

    def finish(self, rows: int) -> WriterCommitMessage:
        """Wait until all that was sent is stored. `rows` is how many there were."""

    def abandon(self) -> None:
        """The task has failed: let go of everything, and wait for nobody who is away."""


class Guarantee(Protocol):
    def begin(self) -> TaskWriter:
        """In a task, before its first row."""

    def publish(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        """On the driver, when all tasks have finished. `batch_id` is that of a stream."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        """On the driver, when some task failed for good: its message is None."""


class AtLeastOnce:
    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def begin(self) -> TaskWriter:
        from kaspar.spark.at_least_once import AtLeastOnceTask

        return AtLeastOnceTask(self._options)

    def publish(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        """Everything was published when it was sent."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int | None) -> None:
        """What was sent stays: whoever reads may see it again after the next attempt."""


def guarantee_of(options: WriteOptions, *, streaming: bool) -> Guarantee:
    if options.guarantee == EXACTLY_ONCE:
        from kaspar.spark.exactly_once import ExactlyOnce

        return ExactlyOnce.of(options, streaming=streaming)
    return AtLeastOnce(options)
