"""The commands: their flags, their sentences, their exit codes."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.commands import PROGRAMS, refusal, run
from tests.peers.downloads import ToolMissingError
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.observed import wait_until
from tests.peers.wire import free_port, responds_to_api_versions


def _settings(folder: Path, **more: str) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / "server.properties"
    values = {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "log.dirs": str(folder / "data"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return file


def _port_of(file: Path) -> int:
    match = re.search(r"127\.0\.0\.1:(\d+)", file.read_text())
    assert match is not None
    return int(match[1])


# kafka-server-start


def test_wrong_value_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    assert "num.partitions" in refusal(_settings(tmp_path, num_partitions="many"))
    assert "num.partitions" in refusal(_settings(tmp_path), "--override", "num.partitions=0")
    assert "listeners" in refusal(_settings(tmp_path), "--override", "listeners=nonsense")
    assert "num.partitions" in refusal(_settings(tmp_path), "--override", "num.partitions")
    assert "nowhere.properties" in refusal(tmp_path / "nowhere.properties")
    assert not (tmp_path / "data").exists()


def test_unknown_setting_warns_with_the_closest_name(tmp_path: Path) -> None:
    with KasparProcess(tmp_path, overrides={"num.partition": "3"}) as broker:
        warnings = [line for line in broker.log_text().splitlines() if " WARNING " in line]
        assert any("num.partition" in line and "num.partitions" in line for line in warnings), warnings


def test_override_wins_over_the_file(tmp_path: Path) -> None:
    port = free_port()
    file = _settings(tmp_path)
    override = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    command = [str(PROGRAMS / "kaspar"), "broker", str(file), "--override", override]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: responds_to_api_versions("127.0.0.1", port), "the broker responds on the port of --override")
        process.terminate()
        assert process.wait(30) == 0


def test_log_says_where_to_connect(tmp_path: Path) -> None:
    with KasparProcess(tmp_path) as broker:
        ready = re.compile(rf"INFO the broker is ready .*{broker.port}")
        wait_until(lambda: ready.search(broker.log_text()) is not None, "the log says where to connect")


def test_log_file_is_json_lines(tmp_path: Path) -> None:
    with KasparProcess(tmp_path, overrides={"kaspar.log.file": str(tmp_path / "log.json")}):
        pass
    entries = [json.loads(line) for line in (tmp_path / "log.json").read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= entries[0].keys()
    assert any(entry["message"] == "the broker is ready" for entry in entries)


# kafka-server-stop


def test_daemon_is_stopped_by_its_node_id(tmp_path: Path) -> None:
    """Node ids that no other broker on this machine has: the command must not stop any but ours."""
    node_id = str(random.randrange(1_000_000, 2_000_000))
    file = _settings(tmp_path, node_id=node_id)
    started = time.monotonic()
    done = run("kafka-server-start", "-daemon", file)
    assert done.returncode == 0, done.stderr
    print(f"the command gave the terminal back after {time.monotonic() - started:.2f} s")
    port = _port_of(file)
    wait_until(lambda: responds_to_api_versions("127.0.0.1", port), "the daemon responds")
    try:
        assert run("kafka-server-stop", "--node-id", str(int(node_id) + 1)).returncode == 1
        assert responds_to_api_versions("127.0.0.1", port)
    finally:
        stopped = run("kafka-server-stop", "--process-role", "broker", "--node-id", node_id)
    assert stopped.returncode == 0, stopped.stderr
    wait_until(lambda: (tmp_path / "data" / ".kafka_cleanshutdown").exists(), "the daemon stops cleanly")
    wait_until(lambda: not responds_to_api_versions("127.0.0.1", port), "the port is free")


def test_without_a_broker_it_says_so(tmp_path: Path) -> None:
    done = run("kafka-server-stop", "--node-id", "2147483646")
    assert (done.returncode, done.stderr) == (1, "No broker with node.id 2147483646 to stop\n")


def test_stops_every_broker_of_the_machine(tmp_path: Path) -> None:
    """In a process namespace of its own, which holds no brokers but these two."""
    unless_missing(_needs_namespaces)
    one, two = _settings(tmp_path / "one", node_id="1"), _settings(tmp_path / "two", node_id="2")
    start, stop = PROGRAMS / "kafka-server-start", PROGRAMS / "kafka-server-stop"
    script = f"""
        {start} {one} 2> {tmp_path}/one.log & first=$!
        (cd {two.parent}; exec {start} server.properties 2> {tmp_path}/two.log) & second=$!
        until grep -q 'broker is ready' {tmp_path}/one.log && grep -q 'broker is ready' {tmp_path}/two.log
        do sleep 0.05; done
        {stop} --node-id 2 && wait $second && echo second $?
        {stop} && wait $first && echo first $?
        {stop} || echo none $?
    """
    isolated = ["unshare", "--pid", "--mount-proc", "--fork", "bash", "-c", script]
    done = subprocess.run(isolated, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split("\n") == ["second 0", "first 0", "none 1", ""], done.stdout + done.stderr


def _needs_namespaces() -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise ToolMissingError("a process namespace needs root and 'unshare'")


# kaspar


def test_version_shows_the_form_of_the_core() -> None:
    done = run("kaspar", "version")
    assert done.returncode == 0
    assert re.match(r"kaspar \d+\.\d+\.\d+, Python 3\.", done.stdout)
    assert "kaspar.records.core.checking: compiled" in done.stdout


def test_version_shows_an_interpreted_core() -> None:
    done = run("kaspar", "version", environment={"KASPAR_INTERPRETED": "1", "KASPAR_COMPILED": "0"})
    assert "kaspar.records.core.checking: interpreted" in done.stdout


def test_demo_ends_by_itself() -> None:
    """Without Spark; tests/spark has the one with it."""
    done = run("kaspar", "demo", "--seconds", "3", "--without-spark")
    assert done.returncode == 0, done.stderr
    match = re.search(r"([\d,]+) events produced, ([\d,]+) consumed", done.stdout)
    assert match is not None, done.stdout
    assert all(int(count.replace(",", "")) > 0 for count in match.groups())


def test_demo_without_java_says_how_to_get_it_and_goes_on(tmp_path: Path) -> None:
    done = run("kaspar", "demo", "--seconds", "1", environment={"JAVA_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert f"Without Spark for now: JAVA_HOME is {tmp_path}, but" in done.stdout
    assert "apt-get install openjdk-17-jre-headless" in done.stdout
    assert re.search(r"events produced, [\d,]+ consumed", done.stdout)


@pytest.mark.parametrize("program", ["kaspar", "kafka-server-start", "kafka-server-stop"])
def test_help(program: str) -> None:
    done = run(program, "--help")
    assert done.returncode == 0
    assert done.stdout.lower().startswith("usage: ")
