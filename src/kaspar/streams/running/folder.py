"""The folder of a program under `state.dir`: what it needs to go on where it was.

run.json         the id of this history of the program, which is committed to its group with every offset
checkpoints/N    Spark's checkpoint of sub-topology N
batches/N.json   what the driver has fixed for a batch before it runs, so that a repeated one sees the same
state/N/P        the state of partition P, a cache of the changelogs

Offsets of the group that were committed with another id, or with none, are from somebody else: the application was
reset, or ran in another folder. Then this history is over, and the program starts anew at those offsets.
"""

import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.client.offsets import CommittedOffset
from kaspar.pipelines.json_files import read_json, write_json

log = get_log(__name__)

_METADATA = "kaspar-streams:"


class RunId(msgspec.Struct, frozen=True):
    id: str


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
        self._id = ""

    def open(self, committed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """`committed` are the offsets of the program's group for its source topics."""
        self.path.mkdir(parents=True, exist_ok=True)
        found = read_json(self._file, RunId)
        if found is not None:
            self._id = found.id
            if all(each.metadata == self.metadata for each in committed.values()):
                return
            log.warning(
                "The offsets of the group were changed by somebody else: the program starts anew at them.",
                folder=self.path,
            )
        self._begin()

    def _begin(self) -> None:
        for inner in ("checkpoints", "batches", "state"):
            shutil.rmtree(self.path / inner, ignore_errors=True)
        self._id = str(uuid.uuid4())
        write_json(self._file, RunId(self._id))

    @property
    def metadata(self) -> str:
        """What is committed with every offset."""
        return _METADATA + self._id

    @property
    def _file(self) -> Path:
        return self.path / "run.json"

    def checkpoint(self, sub_topology: int) -> Path:
        return self.path / "checkpoints" / str(sub_topology)

    def state(self, sub_topology: int) -> Path:
        return self.path / "state" / str(sub_topology)

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
