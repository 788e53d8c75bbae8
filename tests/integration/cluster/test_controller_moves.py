"""`kaspar controller` on a running cluster, whose folder has a name that is not plain ASCII."""

import time
from collections.abc import Iterator

import pytest

from kaspar.cli.main import main
from kaspar.client import Client
from kaspar.testing import Cluster
from tests.integration.cluster.up import needs_java, until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    needs_java()
    folder = tmp_path_factory.mktemp("moves") / "Daten für Ünïcode 1"
    with Cluster(brokers=3, data_dir=folder) as running:
        yield running


def command(cluster: Cluster, *words: str) -> int:
    return main(["controller", "--bootstrap-server", cluster.bootstrap_servers, *words])


def controllers(cluster: Cluster) -> set[int]:
    """As every broker names it."""
    found = set()
    for broker_id in cluster.broker_ids:
        with Client(f"127.0.0.1:{cluster.port(broker_id)}") as client:
            found.add(client.refresh_metadata([]).controller_id)
    return found


def test_controller_moves_to_the_broker_that_is_named(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        before = cluster.controller_id()
        target = next(each for each in (3, 2, 1) if each != before)
        started = time.monotonic()
        assert command(cluster, "--move", "--to", str(target)) == 0
        took = time.monotonic() - started
        assert f"Broker {target} became the controller" in capsys.readouterr().out
        assert took < 10
        until(lambda target=target: controllers(cluster) == {target}, "all brokers know it")  # type: ignore[misc]
    assert command(cluster, "--move", "--to", str(target)) == 0
    assert "already" in capsys.readouterr().out


def test_controller_moves_to_any_other_broker(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    before = cluster.controller_id()
    assert command(cluster) == 0
    assert capsys.readouterr().out == f"Broker {before} is the controller.\n"
    assert command(cluster, "--move") == 0
    assert f"It was broker {before}." in capsys.readouterr().out
    until(lambda: len(controllers(cluster)) == 1 and before not in controllers(cluster), "all brokers know it")


def test_what_is_refused(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(cluster, "--move", "--to", "9") == 1
    assert capsys.readouterr().err == "kaspar: Broker 9 is not up.\n"
    assert command(cluster, "--to", "2") == 1
    assert "--to requires --move" in capsys.readouterr().err
