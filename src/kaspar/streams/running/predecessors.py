"""What earlier runs of the program have published, on any machine: exactly once even if its folder is lost.

Batches of a sub-topology are published under a name that follows from `application.id`, whatever folder the program
runs in, and their decisions say how far the inputs were read. A program without a checkpoint takes over the name: what
was decided is committed, what was not is aborted, and a run that still exists can publish nothing more. Then it resumes
after the last decision. The group's own offsets may be one batch behind, since they are committed with the next one.

The order of the steps matters: take over, commit the offsets to the group, release the name. A start that fails between
two of them is repeated without harm.
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
    """What is kept with the decision of a batch."""

    run: str
    """The id of the run's history (folder.py), which is committed with the group's offsets, too."""
    offsets: Mapping[TopicPartition, int]
    """Up to where the batch reads its inputs."""

    def encode(self) -> str:
        return msgspec.json.encode({"run": self.run, "offsets": to_json(self.offsets)}).decode()

    @classmethod
    def decode(cls, text: str) -> "Note":
        fields = msgspec.json.decode(text)
        return cls(fields["run"], from_json(fields["offsets"]))


def query_name(application_id: str, sub_topology: int) -> str:
    return f"streams/{application_id}/{sub_topology}"


class Predecessors:
    """The runs that had the names of these sub-topologies before."""

    def __init__(self, client: Client, names: Iterable[str]) -> None:
        self._participants = ProcessState.of(client).participants
        self._names = [name for name in names if self._participants.log.read_to_end(name).in_force is not None]

    def take_over(self) -> list[Note]:
        """From here on none of them publishes anything. Returns the notes of their last batches. Raises KasparError."""
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
        """The names are free for the queries of this run, whose batches are counted from 0."""
        for name in self._names:
            release(self._participants, name)


def furthest(
    committed: Mapping[TopicPartition, int], notes: Iterable[Note], run: str | None, recreated: Collection[str]
) -> dict[TopicPartition, int]:
    """The offsets to go on at, of topics that were not recreated.

    `run` is the one whose offsets were committed. Notes of any other are older than these: the program was reset.
    """
    offsets = dict(committed)
    for note in notes:
        if note.run == run:
            for where, offset in note.offsets.items():
                offsets[where] = max(offset, offsets.get(where, offset))
    return {where: offset for where, offset in offsets.items() if where.topic not in recreated}
