"""Takes over from earlier runs of the program on any machine, so that it is exactly once even if its folder is lost.

Batches of a sub-topology are published under a name that is derived from `application.id`, whatever folder the program
runs in, and their decisions contain the offsets up to which the inputs were read. A program without a checkpoint takes
over the name: decided batches are committed, undecided ones are aborted, and an earlier run that is still active cannot
publish any more. The program then resumes after the last decision. The group's own offsets may be one batch behind,
because they are committed with the next batch.

The order of the steps matters: take over, commit the offsets to the group, release the name. A start that fails between
two steps can safely be repeated.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.exactly_once.errors import Superseded
from kaspar.exactly_once.ownership import release, take_over
from kaspar.exactly_once.process_state import ProcessState
from kaspar.spark.offsets import from_json, to_json


class Note(NamedTuple):
    """The note that is stored with the decision of a batch."""

    run: str
    """The id of the program's history (folder.py), which is also committed with the group's offsets."""
    offsets: Mapping[TopicPartition, int]
    """The offsets up to which the batch reads its inputs."""

    def encode(self) -> str:
        return msgspec.json.encode({"run": self.run, "offsets": to_json(self.offsets)}).decode()

    @classmethod
    def decode(cls, text: str) -> "Note":
        fields = msgspec.json.decode(text)
        return cls(fields["run"], from_json(fields["offsets"]))


def query_name(application_id: str, sub_topology: int) -> str:
    return f"streams/{application_id}/{sub_topology}"


class Predecessors:
    """The earlier runs that published under these names."""

    def __init__(self, client: Client, names: Iterable[str]) -> None:
        self._participants = ProcessState.of(client).participants
        self._names = [name for name in names if self._participants.log.read_to_end(name).in_force is not None]

    def take_over(self) -> list[Note]:
        """Prevent earlier runs from publishing. Returns the notes of their last batches. Raises KasparError."""
        notes = []
        for name in self._names:
            state = self._participants.log.read_to_end(name)
            taken = take_over(self._participants, name, f"taken over {self._participants.nonce}", state)
            if taken is None:
                raise Superseded(f"{name} was just taken over by another run of the program: stop the other run")
            if taken.last is not None and taken.last.note is not None:
                notes.append(Note.decode(taken.last.note))
        return notes

    def release(self) -> None:
        """Release the names for the queries of this run, whose batch ids start at 0."""
        for name in self._names:
            release(self._participants, name)


def furthest(
    committed: Mapping[TopicPartition, int], notes: Iterable[Note], run: str | None, recreated: Collection[str]
) -> dict[TopicPartition, int]:
    """The offsets at which to resume, for topics that were not recreated.

    `run` is the id that was committed with the group's offsets. Notes with another id are older than these: the program
    was reset since.
    """
    offsets = dict(committed)
    for note in notes:
        if note.run == run:
            for where, offset in note.offsets.items():
                offsets[where] = max(offset, offsets.get(where, offset))
    return {where: offset for where, offset in offsets.items() if where.topic not in recreated}
