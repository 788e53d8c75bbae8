"""A streams program that spark-submit runs, on this machine and on a cluster, and that ends with its batch."""

import os
import sys
from pathlib import Path

import pytest

from kaspar.spark.running.standalone import Cluster
from tests.peers.kaspar import KasparProcess
from tests.spark.chaos.processes import Program
from tests.spark.programs.apps import TIMEOUT_SECONDS, counts
from tests.spark.topics import Topics, wait_until

SCRIPTS = Path(sys.executable).parent
APP = """
import sys
import time
from pathlib import Path
from kaspar.streams import KafkaStreams, StreamsBuilder

bootstrap, folder, lines, results = sys.argv[1:]

def words_of(line):
    if "wait" in line:
        Path(folder, "in-batch").touch()
        while not Path(folder, "go").exists():
            time.sleep(0.01)
    return line.split()

builder = StreamsBuilder()
words = builder.stream(lines).flat_map_values(words_of)
words.group_by(lambda key, word: word).count("counts").to_stream().to(results)
settings = {"application.id": f"app-{lines}", "bootstrap.servers": bootstrap, "state.dir": folder,
            "replication.factor": 1, "processing.guarantee": "exactly_once_v2"}
KafkaStreams(builder.build(), settings).run()
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["local", "cluster"])
def test_submitted_program_finishes_its_batch_after_sigterm(
    place: str,
    request: pytest.FixtureRequest,
    broker: KasparProcess,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal goes to spark-submit, which is a JVM: the program is its child."""
    cluster: Cluster | None = request.getfixturevalue("cluster") if place == "cluster" else None
    lines, results = topics.create(partitions=2), topics.create()
    topics.produce(lines, [b"to be or not to be"])
    (app := tmp_path / "app.py").write_text(APP)
    monkeypatch.setenv("PATH", str(SCRIPTS), prepend=os.pathsep)  # as in an activated environment
    master = ["--master", "local[2]" if cluster is None else cluster.master]
    memory = ["--driver-memory", "512m", "--executor-memory", "512m"]
    arguments = [str(app), broker.bootstrap, str(tmp_path), lines, results]
    with Program([str(SCRIPTS / "spark-submit"), *master, *memory, *arguments], tmp_path / "log") as program:
        wanted = {"to": 2, "be": 2, "or": 1, "not": 1}
        wait_until(lambda: counts(topics, results) == wanted, "the words are counted", seconds=TIMEOUT_SECONDS)
        topics.produce(lines, [b"not to wait"])
        wait_until((tmp_path / "in-batch").exists, "it is in the middle of a batch", seconds=TIMEOUT_SECONDS)
        program.terminate()
        (tmp_path / "go").touch()
        assert program.wait(TIMEOUT_SECONDS) == 0, program.end_of_log()
        assert [each.command for each in program.processes() if each.is_driver] == []
    assert counts(topics, results) == {"to": 3, "be": 2, "or": 1, "not": 2, "wait": 1}
