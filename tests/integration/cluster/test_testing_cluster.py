"""`kaspar.testing.Cluster`, as people use it in their own tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.client import Client
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java, until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    needs_java()
    with Cluster(brokers=3, overrides={"num.partitions": "2"}) as cluster:
        yield cluster


def seen_by(cluster: Cluster, broker_id: int) -> set[int]:
    with Client(f"127.0.0.1:{cluster.port(broker_id)}") as client:
        return {broker.node_id for broker in client.refresh_metadata([]).brokers}


def test_all_brokers_see_each_other_when_it_has_started(cluster: Cluster) -> None:
    assert cluster.broker_ids == [1, 2, 3]
    assert cluster.bootstrap_servers == ",".join(f"127.0.0.1:{cluster.port(each)}" for each in (1, 2, 3))
    for broker_id in cluster.broker_ids:
        assert seen_by(cluster, broker_id) == {1, 2, 3}
        assert "num.partitions=2" in (cluster.data_dir / f"broker-{broker_id}" / "server.properties").read_text()


def test_killed_controller_is_replaced_and_can_be_started_again(cluster: Cluster) -> None:
    killed = cluster.controller_id()
    cluster.kill(killed)
    assert not cluster.is_running(killed)
    assert cluster.controller_id() != killed
    cluster.start_broker(killed)
    assert killed in seen_by(cluster, killed)
    cluster.wait_complete()
    with pytest.raises(KasparError, match=f"broker {killed} is already running"):
        cluster.start_broker(killed)


def test_broker_is_stopped_cleanly_and_restarted(cluster: Cluster) -> None:
    pid = cluster.pid(2)
    cluster.stop_broker(2)
    assert (cluster.broker_data(2) / ".kafka_cleanshutdown").exists()
    until(lambda: 2 not in seen_by(cluster, 1), "a broker that has stopped is not there any more")
    cluster.restart(2)
    assert cluster.pid(2) != pid
    cluster.wait_complete()


def test_paused_broker_does_nothing_until_it_is_resumed(cluster: Cluster) -> None:
    cluster.pause(3)
    state = Path(f"/proc/{cluster.pid(3)}/stat").read_text().rpartition(")")[2].split()[0]
    assert state == "T"
    cluster.resume(3)
    assert seen_by(cluster, 3) >= {3}


def test_zookeeper_can_be_killed_and_started_again(cluster: Cluster) -> None:
    cluster.kill_zookeeper()
    cluster.start_zookeeper()
    cluster.wait_complete()


def test_unknown_members_are_refused(cluster: Cluster) -> None:
    with pytest.raises(KasparError, match="there is no broker 4; brokers: 1, 2, 3"):
        cluster.kill(4)
    with pytest.raises(KasparError, match="there is no ZooKeeper server 2"):
        cluster.kill_zookeeper(2)


# -- one broker, which is quicker and needs no Java --------------------------------------------------------------------


def test_data_is_temporary_and_processes_end(tmp_path: Path) -> None:
    with Cluster(brokers=1) as cluster:
        broker = ProcessId.of(cluster.pid(1))
        assert cluster.controller_id() == 1
        cluster.pause(1)  # also what a test has left paused
    assert not broker.is_running()
    assert not cluster.data_dir.exists()
    cluster.close()


def test_given_folder_is_kept_and_used_again(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path / "c1") as cluster:
        port = cluster.port(1)
        cluster.stop()
        cluster.start()
        assert cluster.port(1) == port
        with pytest.raises(KasparError, match="is already running"):
            Cluster(brokers=1, data_dir=tmp_path / "c1").start()
    assert (tmp_path / "c1" / "broker-1" / "broker.log").exists()


def test_failure_of_a_test_comes_with_the_logs() -> None:
    with pytest.raises(ZeroDivisionError) as failed, Cluster(brokers=1):
        _ = 1 / 0
    (note,) = failed.value.__notes__
    assert note.startswith("-- broker 1 (is running), ")
    assert "the broker is ready" in note


def test_broker_that_fails_by_itself_fails_the_test() -> None:
    cluster = Cluster(brokers=1)
    cluster.start()
    os.kill(cluster.pid(1), signal.SIGABRT)
    until(lambda: not cluster.is_running(1), "it ends")
    with pytest.raises(KasparError, match="broker 1 was killed by SIGABRT"):
        cluster.close()
    assert not cluster.data_dir.exists()


def test_setting_that_is_refused_is_raised() -> None:
    cluster = Cluster(brokers=1, overrides={"num.partitions": "0"})
    with pytest.raises(KasparError, match=r"num\.partitions"), cluster:
        pass
    assert not cluster.data_dir.exists()
