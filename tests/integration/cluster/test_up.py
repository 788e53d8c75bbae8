"""`kaspar up`, `kaspar status` and `kaspar stop`: real processes, how they start, come back and end.

Most tests share one cluster of three brokers, and leave it ready. The last ones end it and start it again.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.client import Client
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.integration.cluster.up import Up, all_gone, needs_java, until
from tests.integration.commands import run


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    needs_java()
    with Up(tmp_path_factory.mktemp("up") / "c1", "--brokers", "3", "--override", "num.partitions=4") as up:
        yield up


def create_topic(port: int, name: str) -> None:
    """With the brokers' defaults."""
    with Client(f"127.0.0.1:{port}") as client:
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=(), configs=())
        response = client.request_controller(
            CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), CreateTopicsResponse
        )
    assert [each.error_code for each in response.topics] == [0], response


def partitions_of(port: int, topic: str) -> list[list[int]]:
    """The replicas of every partition, by the metadata of the broker on this port."""
    with Client(f"127.0.0.1:{port}") as client:
        until(lambda: client.refresh_metadata([topic]).topics[0].partitions, f"the broker does not know {topic}")
        (found,) = client.refresh_metadata([topic]).topics
    return [sorted(partition.replica_nodes) for partition in found.partitions]


def test_ready_line_names_the_bootstrap_servers(cluster: Up) -> None:
    (line,) = (line for line in cluster.lines() if not line.startswith("waiting for "))  # on a busy machine
    servers = ",".join(f"127.0.0.1:{cluster.port + each}" for each in range(3))
    assert f": 3 brokers, bootstrap servers {servers}, data in {cluster.folder}. Ctrl-C stops." in line


def test_every_broker_knows_all_and_the_same_controller(cluster: Up) -> None:
    controllers = set()
    for port in range(cluster.port, cluster.port + 3):
        with Client(f"127.0.0.1:{port}") as client:
            response = client.refresh_metadata([])
        assert {(each.node_id, each.port) for each in response.brokers} == {
            (number, cluster.port + number - 1) for number in (1, 2, 3)
        }
        controllers.add(response.controller_id)
    assert len(controllers) == 1
    assert [each["id"] for each in cluster.ready()["brokers"] if each["controller"]] == list(controllers)


def test_topic_has_the_replicas_of_a_cluster_and_the_overrides(cluster: Up) -> None:
    create_topic(cluster.port, "orders")
    assert partitions_of(cluster.port + 2, "orders") == [[1, 2, 3]] * 4


def test_status_for_programs(cluster: Up) -> None:
    status = cluster.ready()
    assert list(status) == ["ready", "brokers", "zookeepers", "services"]
    for number, broker in enumerate(status["brokers"], 1):
        assert list(broker) == ["id", "port", "pid", "state", "controller", "metrics", "log_dir"]
        assert (broker["id"], broker["port"], broker["state"]) == (number, cluster.port + number - 1, "ready")
        assert Path(f"/proc/{broker['pid']}/cmdline").read_text().split("\0")[-2] == str(
            cluster.folder / f"broker-{number}" / "server.properties"
        )
        assert Path(broker["log_dir"], "meta.properties").exists()
    (server,) = status["zookeepers"]
    assert list(server) == ["id", "port", "pid", "state"]
    assert server["state"] == "ready"
    assert {each["pid"] for each in (*status["brokers"], server)} == {each.pid for each in cluster.members()}


def test_status_for_people(cluster: Up) -> None:
    done = run("kaspar", "status", "--dir", cluster.folder)
    assert done.returncode == 0, done
    assert done.stdout.startswith(f"{cluster.folder} is ready: bootstrap servers 127.0.0.1:{cluster.port},")
    assert done.stdout.count("controller") == 1
    assert len(done.stdout.splitlines()) == 7


def test_second_supervisor_is_refused(cluster: Up) -> None:
    done = run("kaspar", "up", "--dir", cluster.folder)
    assert done.returncode == 1
    assert done.stderr.startswith(f"kaspar: 'kaspar up' is already running in {cluster.folder}: stop it with")
    assert len(done.stderr.splitlines()) == 1
    cluster.ready()


def test_used_port_is_refused(cluster: Up, tmp_path: Path) -> None:
    done = run("kaspar", "up", "--brokers", "2", "--dir", tmp_path / "c2", "--port", str(cluster.port - 1))
    assert done.returncode == 1
    assert done.stderr.startswith(f"kaspar: broker 2 cannot listen on 127.0.0.1:{cluster.port} ")
    assert [file.name for file in (tmp_path / "c2").iterdir()] == ["lock"]


def test_killed_controller_is_started_again_and_another_one_elected(cluster: Up) -> None:
    before = next(each for each in cluster.ready()["brokers"] if each["controller"])
    os.kill(before["pid"], signal.SIGKILL)
    line = cluster.wait_for(f"broker {before['id']} was killed by SIGKILL and will be restarted in 0.5 s")
    assert f"(log: {cluster.folder}/broker-{before['id']}/broker.log)" in line
    cluster.wait_for(f"broker {before['id']} is ready again")
    status = cluster.ready()
    assert status["brokers"][before["id"] - 1]["pid"] != before["pid"]
    assert next(each for each in status["brokers"] if each["controller"])["id"] != before["id"]
    assert partitions_of(before["port"], "orders") == [[1, 2, 3]] * 4


def test_killed_zookeeper_is_started_again(cluster: Up) -> None:
    before = cluster.ready()["zookeepers"][0]
    os.kill(before["pid"], signal.SIGKILL)
    cluster.wait_for("ZooKeeper was killed by SIGKILL and will be restarted")
    cluster.wait_for("ZooKeeper is ready again")
    after = cluster.ready()["zookeepers"][0]
    assert after["pid"] != before["pid"]
    assert after["port"] == before["port"]
    create_topic(cluster.port, "after-zookeeper")


def test_sigterm_ends_everything_cleanly_and_the_next_start_has_the_data_and_may_have_more_brokers(cluster: Up) -> None:
    before = cluster.ready()
    members = cluster.members()
    assert len(members) == 4
    cluster.signal(signal.SIGTERM)
    assert cluster.ended() == 0
    assert not any(member.is_running() for member in members), "it waits for all of them"
    for broker in before["brokers"]:
        log = (cluster.folder / f"broker-{broker['id']}" / "broker.log").read_text()
        assert "the broker has stopped" in log.splitlines()[-1]
        assert (Path(broker["log_dir"]) / ".kafka_cleanshutdown").exists()
    assert run("kaspar", "status", "--dir", cluster.folder).returncode == 1

    cluster.start("--dir", str(cluster.folder), "--brokers", "4")
    after = cluster.ready()
    assert [each["port"] for each in after["brokers"]] == list(range(cluster.port, cluster.port + 4))
    assert [each["metrics"] for each in after["brokers"][:3]] == [each["metrics"] for each in before["brokers"]]
    assert after["zookeepers"][0]["port"] == before["zookeepers"][0]["port"]
    assert partitions_of(cluster.port + 3, "orders") == [[1, 2, 3]] * 4, "the new broker is one of them"


def test_members_end_with_a_supervisor_that_is_killed(cluster: Up) -> None:
    cluster.ready()
    members = cluster.members()
    cluster.signal(signal.SIGKILL)
    cluster.ended()
    all_gone(members)
    assert {each["state"] for each in cluster.status()["brokers"]} == {"stopped"}


def test_ensemble_survives_the_end_of_a_server(tmp_path: Path) -> None:
    needs_java()
    with Up(tmp_path / "c1", "--brokers", "2", "--zookeepers", "3") as up:
        status = up.ready()
        assert [each["state"] for each in status["zookeepers"]] == ["ready"] * 3
        os.kill(status["zookeepers"][2]["pid"], signal.SIGKILL)  # the other two are a majority
        create_topic(up.port + 1, "pairs")
        assert partitions_of(up.port, "pairs") == [[1, 2]]
        up.wait_for("ZooKeeper 3 is ready again")

        members = up.members()
        done = run("kaspar", "stop", "--dir", up.folder)
        assert done.returncode == 0, done
        assert done.stdout.splitlines()[-1].startswith(f"Stopped everything in {up.folder} in ")
        assert up.ended() == 0
        assert not any(member.is_running() for member in members)
    assert run("kaspar", "stop", "--dir", up.folder).stdout == f"Nothing is running in {up.folder}.\n"


# -- one broker --------------------------------------------------------------------------------------------------------


def test_single_broker_needs_no_zookeeper(tmp_path: Path) -> None:
    with Up(tmp_path / "c1") as up:
        status = up.ready()
        assert status["zookeepers"] == []
        (broker,) = status["brokers"]
        assert broker["controller"] is True
        assert [each.pid for each in up.members()] == [broker["pid"]]
        create_topic(up.port, "orders")
        os.kill(broker["pid"], signal.SIGKILL)
        up.wait_for("broker 1 is ready again")
        assert partitions_of(up.port, "orders") == [[1]]
        up.signal(signal.SIGINT)
        assert up.ended() == 0

    # A start that fails says why, and leaves nothing running.
    identity = tmp_path / "c1" / "broker-1" / "data" / "meta.properties"
    identity.write_text(identity.read_text().replace("node.id=1", "node.id=7"))
    done = run("kaspar", "up", "--dir", tmp_path / "c1")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("kaspar: broker 1 exited with code 1: ")
    assert "7" in line
    assert line.endswith(f"(log: {tmp_path}/c1/broker-1/broker.log)")
    assert not (tmp_path / "c1" / "supervisor.json").exists()


def test_broker_that_hangs_delays_the_end_until_a_second_ctrl_c(tmp_path: Path) -> None:
    with Up(tmp_path / "c1") as up:
        (broker,) = up.members()
        broker.send(signal.SIGSTOP)
        up.signal(signal.SIGKILL)
        up.ended()
        assert broker.is_running(), "the kernel asked it to stop, and it cannot"
        broker.send(signal.SIGCONT)
        up.start("--dir", str(up.folder))  # waits for it, and goes on with its port and its data
        assert not broker.is_running()

        (broker,) = up.members()
        broker.send(signal.SIGSTOP)
        up.signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            up.process.wait(0.5)
        stopping = run("kaspar", "stop", "--dir", up.folder, "--timeout", "0.2")
        assert stopping.returncode == 1
        assert stopping.stderr == "kaspar: broker 1 did not stop within 0.2 s\n"
        up.signal(signal.SIGINT)
        assert up.ended() == 130
        assert not broker.is_running()
