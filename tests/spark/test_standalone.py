"""`kaspar spark start`, `status` and `stop`: real processes, and a program that runs on them unchanged."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.commands import PROGRAMS
from tests.peers.kaspar import KasparProcess
from tests.peers.wire import free_port
from tests.spark.marked import Mark
from tests.spark.topics import Topics, wait_until

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # as IPv4, and as IPv4 within IPv6
SECONDS = 110.0
PROGRAM = """
import sys
import kaspar.spark
from pyspark.sql import functions as f

master, bootstrap, topic, target = sys.argv[1:]
small = {"spark.driver.memory": "512m", "spark.executor.memory": "512m"}
spark = kaspar.spark.session("on a cluster", master, small)
broker = {"kafka.bootstrap.servers": bootstrap}
rows = spark.read.format("kaspar").options(**broker, subscribe=topic).load()
python = f.udf(lambda value: sys.executable.encode(), "binary")
converted = rows.select(python("value").alias("value"))
converted.write.format("kaspar").options(**broker, topic=target).mode("append").save()
spark.stop()
"""


@dataclass(frozen=True)
class Commands:
    folder: Path
    mark: Mark

    def run(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [PROGRAMS / "kaspar", "spark", command, *arguments, "--dir", self.folder],
            env=self.mark.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path, Mark())
    yield commands
    commands.run("stop")


@pytest.mark.timeout(400)
def test_program_runs_on_a_cluster_unchanged(commands: Commands, broker: KasparProcess, topics: Topics) -> None:
    port = free_port()
    size = ("--workers", "2", "--cores", "1", "--memory", "1g")
    started = commands.run("start", *size, "--port", str(port))
    assert started.returncode == 0, started.stderr
    master = f"spark://127.0.0.1:{port}"
    assert started.stdout.startswith(f"{master} is ready: 2 workers with 1 core and 1g each.\n")
    assert "workers       2 of 2 alive" in commands.run("status").stdout

    again = commands.run("start", *size, "--port", str(port))
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert f", on {master}" in again.stderr

    orders, responses = topics.create(partitions=2), topics.create()
    topics.produce(orders, [b"one", b"two", b"three"])
    program = [sys.executable, "-c", PROGRAM, master, broker.bootstrap, orders, responses]
    with subprocess.Popen(program, env=commands.mark.environment, stderr=subprocess.PIPE, text=True) as running:
        wait_until(
            lambda: "on a cluster" in commands.run("status").stdout or running.poll() is not None,
            "the program is seen on the cluster",
            seconds=SECONDS,
        )
        assert commands.mark.listening() <= LOOPBACK
        _, errors = running.communicate(timeout=SECONDS)
        assert running.returncode == 0, errors
    assert topics.values(responses) == [sys.executable.encode()] * 3

    stopped = commands.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert commands.mark.processes() == []
    assert commands.run("status").returncode == 1


def test_port_in_use_is_a_sentence_and_starts_nothing(commands: Commands, broker: KasparProcess) -> None:
    port = broker.bootstrap.partition(":")[2]
    refused = commands.run("start", "--port", port)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"kaspar: the master cannot listen on 127.0.0.1:{port} (Address already in use): "
        "choose another --port, or another --host\n"
    )
    assert commands.mark.processes() == []


def _start_until_something_runs(commands: Commands) -> "subprocess.Popen[str]":
    command: list[str | Path] = [PROGRAMS / "kaspar", "spark", "start", "--port", str(free_port())]
    command += ["--dir", commands.folder]
    starting = subprocess.Popen(command, env=commands.mark.environment, stderr=subprocess.PIPE, text=True)
    wait_until((commands.folder / "cluster.json").exists, "the master is written down")
    return starting


def test_interrupted_start_leaves_nothing_behind(commands: Commands) -> None:
    with _start_until_something_runs(commands) as starting:
        starting.send_signal(signal.SIGINT)
        _, errors = starting.communicate(timeout=SECONDS)
    assert (starting.returncode, errors) == (
        130,
        "kaspar: interrupted; the processes that this command started were stopped\n",
    )
    assert commands.mark.processes() == []
    assert "no cluster is running" in commands.run("status").stderr


def test_what_a_killed_start_leaves_behind_is_stopped(commands: Commands) -> None:
    with _start_until_something_runs(commands) as starting:
        starting.kill()
    assert ", on spark://127.0.0.1:" in commands.run("start").stderr
    assert commands.run("stop").returncode == 0
    assert commands.mark.processes() == []
