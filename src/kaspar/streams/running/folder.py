"""The directory of a program under `state.dir`: everything that it needs to resume.

run.json         the id of this history of the program, which is committed to its group with every offset; the ids of
                 the topics that the rest of the folder depends on; for each sub-topology, the name of its state and
                 the topics that it reads
checkpoints/N    Spark's checkpoint of sub-topology N
batches/N.json   values that the driver has fixed for a batch before it runs, so that a repeated batch sees them again
state/N/NAME/P   the state of partition P, a cache of the changelogs

A history continues across restarts of the program, and ends when the whole directory is outdated.

Outdated parts are detected when the folder is opened (outdated.py), and discarded. The new state then gets another
name, because machines of a Spark cluster may still have files with the old name, and processes may have them open.
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
    """The names of the state directories, by sub-topology number."""
    sources: Mapping[str, Sequence[str]] = {}
    """The topics that each sub-topology reads, by number. Its checkpoint contains the offsets of these topics."""
    has_named_queries: bool = False
    """Whether batches are published under names (predecessors.py); earlier versions used the ids in the checkpoints."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The values that must be the same if a batch is repeated."""

    batch_id: int
    wall_clock_ms: int
    global_ends: Mapping[str, Sequence[int]]
    """The end offsets up to which the partitions of global tables' topics are read."""


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = Run("")
        self.recreated: frozenset[str] = frozenset()
        """The topics that were found to be recreated when the folder was opened."""

    def create(self) -> None:
        """Create the folder. Raises StreamsError if it is not writable."""
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
        """Discard outdated parts. Returns the offsets at which sub-topologies without a checkpoint start.

        `committed` are the offsets of the program's group for its source topics. `topic_ids` are the known ids of the
        topics in `topics`. `sources` are the topics that each sub-topology reads. Raises StreamsError if a changed
        program reads a topic in another sub-topology than before.
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
        """Raises StreamsError if a topic has moved to another sub-topology. Its offsets are in the checkpoint of the
        sub-topology that reads it. Another one would treat it as a new topic, and process all of its records again."""
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
        """Remove the offsets of recreated topics that were fixed for a batch: the new topics may never reach them."""
        facts = self.batch_facts(number)
        if facts is not None and not facts.global_ends.keys().isdisjoint(recreated):
            ends = {topic: ends for topic, ends in facts.global_ends.items() if topic not in recreated}
            self.write_batch_facts(number, replace(facts, global_ends=ends))

    @property
    def metadata(self) -> str:
        """The metadata that is committed with every offset."""
        return _METADATA + self._run.id

    @staticmethod
    def committed_by(committed: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """The id of the history that committed these offsets; None if they were not all committed by one."""
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
        """The end offsets of a batch's inputs. Spark writes this file before the batch runs: a version, settings, and a
        line for each source, the first of which is the data source."""
        lines = (self.checkpoint(sub_topology) / "offsets" / str(batch_id)).read_text().splitlines()
        return from_json(msgspec.json.decode(lines[_FIRST_SOURCE]))

    def state(self, sub_topology: int) -> Path:
        number = str(sub_topology)
        return self.path / "state" / number / self._run.state_names[number]

    # --- batches ------------------------------------------------------------------------------------------------------

    def batch_facts(self, sub_topology: int) -> BatchFacts | None:
        """The facts of the last batch for which they were written."""
        return read_json(self._batch_file(sub_topology), BatchFacts)

    def write_batch_facts(self, sub_topology: int, facts: BatchFacts) -> None:
        file = self._batch_file(sub_topology)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, facts)

    def _batch_file(self, sub_topology: int) -> Path:
        return self.path / "batches" / f"{sub_topology}.json"


def _remove(folder: Path) -> None:
    """Remove a folder. Raises OSError if that fails: outdated parts must not be used again."""
    if folder.exists():
        shutil.rmtree(folder)
