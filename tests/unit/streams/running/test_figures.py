"""What is reported of a running program."""

from pathlib import Path
from typing import cast

from kaspar.streams import StreamsBuilder
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.running.figures import Figures
from kaspar.streams.running.pipeline import StreamsPipeline
from kaspar.streams.running.query import SubTopologyQuery
from kaspar.streams.running.reports import PartitionReport, TaskReport


class Counted:
    """A sub-topology, as far as it is counted."""

    def __init__(self, *reports: TaskReport) -> None:
        self.figures = Figures()
        self.figures.add(reports)


def test_progress_has_what_was_written_and_dropped(tmp_path: Path) -> None:
    config = StreamsConfig.of({"application.id": "app", "bootstrap.servers": "nowhere:1", "state.dir": tmp_path})
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    pipeline = StreamsPipeline(builder.build(), config)
    parts = [
        Counted(TaskReport({0: PartitionReport({}, {"task": 50}, 7)}, 4, 3, {"late": 2}), TaskReport({}, 1, 1, {})),
        Counted(TaskReport({0: PartitionReport({}, {"task": 40}, 8)}, 5, 2, {"late": 1, "deserialization": 1})),
    ]
    pipeline.sub_topologies = cast("list[SubTopologyQuery]", parts)
    progress = pipeline.progress()
    assert (progress.rows, progress.written) == (10, 6)
    assert progress.dropped == {"late": 3, "deserialization": 1}
    assert (progress.state_bytes, progress.stream_time_ms) == (15, 40)
