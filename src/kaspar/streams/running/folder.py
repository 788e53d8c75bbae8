"""The directory of a program under `state.dir`: what it needs to resume.

run.json         the id of this history of the program, which is committed to its group with every offset; the ids of
                 the topics that the rest of the folder depends on; the names of the state of each sub-topology, and
                 the topics that it reads
checkpoints/N    Spark's checkpoint of sub-topology N
batches/N.json   what the driver has fixed for a batch before it runs, so that a repeated one sees the same
state/N/NAME/P   the state of partition P, a cache of the changelogs

What is outdated is found when the folder is opened (outdated.py), and discarded. State that is discarded gets another
name as well: machines of a Spark cluster may still have files of the old name, and processes may have them open.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.client.offsets import CommittedOffset
from kaspar.pipelines.json_files import read_json, write_json
from kaspar.spark.offsets import from_json
from kaspar.streams.errors import StreamsError
from kaspar.streams.running.outdated import Outdated, SubTopologyTopics, is_of_somebody_else, recreated_topics

log = get_log(__name__)

_METADATA = "kaspar-streams:"
_FIRST_SOURCE = 2


class Run(msgspec.Struct, frozen=True):
    id: str
    topic_ids: Mapping[str, str] = {}
    state_names: Mapping[str, str] = {}
    """By the numbers of the sub-topologies."""
    sources: Mapping[str, Sequence[str]] = {}
    """What each of them reads, by their numbers: its checkpoint has the offsets of these topics."""
    has_named_queries: bool = False
    """Whether batches are published under names (predecessors.py); earlier versions used the ids in the checkpoints."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What a batch must see again if it is repeated."""

    batch_id: int
    wall_clock_ms: int
    global_ends: Mapping[str, Sequence[int]]
    """Up to where each partition of the topics of global tables is read."""


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = Run("")
        self.recreated: frozenset[str] = frozenset()
        """The topics that were found to be others than before when the folder was opened."""

    def create(self) -> None:
        """Raises StreamsError if it cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            reason = problem.strerror
        else:
            if os.access(self.path, os.W_OK | os.X_OK):
                return
            reason = os.strerror(errno.EACCES)
        raise StreamsError(f"The directory {self.path} is not writable ({reason}): set state.dir to another one.")

    def open(
        self,
        committed: Mapping[TopicPartition, CommittedOffset],
        topics: Collection[SubTopologyTopics],
        topic_ids: Mapping[str, str],
        sources: Mapping[int, Sequence[str]],
    ) -> dict[TopicPartition, int]:
        """Discard what is outdated. Returns where sub-topologies without a checkpoint begin.

        `committed` are the offsets of the program's group for its source topics. `topic_ids` are those of the topics
        in `topics`, as far as they are known. `sources` are the topics that each sub-topology reads. Raises
        StreamsError if a changed program reads a topic in another sub-topology than before.
        """
        self.create()
        run = read_json(self._file, Run)
        recreated = frozenset() if run is None else recreated_topics(run.topic_ids, topic_ids)
        self.recreated = recreated
        if run is None or self._is_over(run, committed):
            for inner in ("checkpoints", "batches", "state"):
                _remove(self.path / inner)
            run = Run(str(uuid.uuid4()), has_named_queries=True)
        else:
            self._refuse_moved(run, sources)
            run = self._without(run, Outdated.of(topics, recreated), recreated)
        names = {str(each.number): uuid.uuid4().hex for each in topics} | dict(run.state_names)
        read = {**run.sources, **{str(number): sorted(names) for number, names in sources.items()}}
        ids = {**run.topic_ids, **topic_ids}
        self._run = msgspec.structs.replace(run, topic_ids=ids, state_names=names, sources=read)
        write_json(self._file, self._run)
        return {where: each.offset for where, each in committed.items() if where.topic not in recreated}

    def _is_over(self, run: Run, committed: Mapping[TopicPartition, CommittedOffset]) -> bool:
        if not is_of_somebody_else(committed, _METADATA + run.id):
            return False
        log.warning(
            "The offsets of the group were changed externally, for example by kafka-streams-application-reset: the "
            "program discards its checkpoints and local state, and starts at these offsets.",
            folder=self.path,
        )
        return True

    def _refuse_moved(self, run: Run, sources: Mapping[int, Sequence[str]]) -> None:
        """A topic's offsets are in the checkpoint of the sub-topology that reads it. Another sub-topology would take it
        for a new topic, and process all of its records again."""
        before = {int(number): read for number, read in run.sources.items() if self.checkpoint(int(number)).exists()}
        for number, read in sources.items():
            for earlier, topics in before.items():
                moved = sorted({*topics} & {*read} - {*before.get(number, ())} - {*sources.get(earlier, ())})
                if moved:
                    raise StreamsError(
                        f"The topic {moved[0]} was read by sub-topology {earlier} and is now read by sub-topology "
                        f"{number}, which would process records of it again. Declare new streams after the existing "
                        "ones; otherwise use a new application.id, or reset the application "
                        "(kafka-streams-application-reset)."
                    )

    def _without(self, run: Run, outdated: Outdated, recreated: Collection[str]) -> Run:
        if not outdated.states:
            return run
        log.warning(
            "Topics of the program were deleted and recreated: the data read from them is discarded.",
            topics=", ".join(sorted(recreated)),
            folder=self.path,
        )
        for number in outdated.checkpoints:
            _remove(self.checkpoint(number))
            self._batch_file(number).unlink(missing_ok=True)
        for number in outdated.states:
            _remove(self.path / "state" / str(number))
            self._forget_ends(number, recreated)
        kept = {number: name for number, name in run.state_names.items() if int(number) not in outdated.states}
        return msgspec.structs.replace(run, state_names=kept)

    def _forget_ends(self, number: int, recreated: Collection[str]) -> None:
        """The offsets that were fixed for a batch are of the old topics; the new ones may never reach them."""
        facts = self.batch_facts(number)
        if facts is not None and not facts.global_ends.keys().isdisjoint(recreated):
            ends = {topic: ends for topic, ends in facts.global_ends.items() if topic not in recreated}
            self.write_batch_facts(number, replace(facts, global_ends=ends))

    @property
    def metadata(self) -> str:
        """What is committed with every offset."""
        return _METADATA + self._run.id

    @staticmethod
    def committed_by(committed: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """The id of the run that committed these offsets; None if it was not one run of a streams program."""
        (found, *others) = {each.metadata for each in committed.values()} or {""}
        is_one = not others and found.startswith(_METADATA)
        return found.removeprefix(_METADATA) if is_one else None

    @property
    def _file(self) -> Path:
        return self.path / "run.json"

    @property
    def run_id(self) -> str:
        return self._run.id

    @property
    def has_named_queries(self) -> bool:
        return self._run.has_named_queries

    def checkpoint(self, sub_topology: int) -> Path:
        return self.path / "checkpoints" / str(sub_topology)

    def batch_offsets(self, sub_topology: int, batch_id: int) -> dict[TopicPartition, int]:
        """Up to where the batch reads. Spark writes it down before the batch runs: a version, settings, and a line for
        each source, of which the data source is the first."""
        lines = (self.checkpoint(sub_topology) / "offsets" / str(batch_id)).read_text().splitlines()
        return from_json(msgspec.json.decode(lines[_FIRST_SOURCE]))

    def state(self, sub_topology: int) -> Path:
        number = str(sub_topology)
        return self.path / "state" / number / self._run.state_names[number]

    # --- batches ------------------------------------------------------------------------------------------------------

    def batch_facts(self, sub_topology: int) -> BatchFacts | None:
        """Of the last batch for which they were written."""
        return read_json(self._batch_file(sub_topology), BatchFacts)

    def write_batch_facts(self, sub_topology: int, facts: BatchFacts) -> None:
        file = self._batch_file(sub_topology)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, facts)

    def _batch_file(self, sub_topology: int) -> Path:
        return self.path / "batches" / f"{sub_topology}.json"


def _remove(folder: Path) -> None:
    """Raises OSError: what is outdated must not be used again."""
    if folder.exists():
        shutil.rmtree(folder)
