"""`kaspar.testing.Broker` and its pytest fixture, as people use them in their own tests."""

import threading
import time
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.broker.coordination.producer_ids import ProducerIds
from kaspar.testing import Broker
from tests.peers.raw_client import RawClient


@pytest.fixture(params=[False, True], ids=["in a thread", "in a process"])
def process(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def _write_and_read(broker: Broker, value: bytes) -> None:
    with RawClient(broker.port) as client:
        client.create_topic("orders")
        assert client.produce("orders", [value]).error_code == 0
        assert client.read_values("orders")[-1] == value


def test_serves_and_removes_its_data(process: bool) -> None:
    with Broker(process=process) as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        _write_and_read(broker, b"x")
        assert broker.data_dir.exists()
    assert not broker.data_dir.exists()


def test_several_at_once(process: bool) -> None:
    with Broker(process=process) as one, Broker(process=process) as two, Broker(process=process) as three:
        assert len({one.port, two.port, three.port}) == 3
        for broker in (one, two, three):
            _write_and_read(broker, str(broker.port).encode())


def test_close_twice_and_without_a_start(process: bool) -> None:
    broker = Broker(process=process)
    broker.close()
    broker = Broker(process=process)
    broker.start()
    broker.start()
    broker.close()
    broker.close()


def test_restart_on_the_same_data_and_port(process: bool, tmp_path: Path) -> None:
    with Broker(process=process, data_dir=tmp_path) as broker:
        port = broker.port
        _write_and_read(broker, b"before")
        broker.stop()
        broker.start()
        assert broker.port == port
        with RawClient(port) as client:
            assert client.read_values("orders") == [b"before"]
    assert (tmp_path / "meta.properties").exists(), "a folder that was given is left there"
    with Broker(process=not process, data_dir=tmp_path) as other, RawClient(other.port) as client:
        assert client.read_values("orders") == [b"before"]


def test_kill_and_start_again(tmp_path: Path) -> None:
    with Broker(process=True, data_dir=tmp_path) as broker:
        _write_and_read(broker, b"before")
        broker.kill()
        broker.start()
        with RawClient(broker.port) as client:
            assert client.read_values("orders") == [b"before"]


def test_only_a_process_can_be_killed() -> None:
    with Broker() as broker, pytest.raises(KasparError, match="process=True"):
        broker.kill()


def test_settings_are_given_as_overrides(process: bool) -> None:
    with Broker(process=process, overrides={"num.partitions": "7"}) as broker, RawClient(broker.port) as client:
        assert client.create_topic("orders", partitions=-1) == 0
        assert len(client.metadata("orders").topics[0].partitions) == 7


def test_wrong_setting_is_raised(process: bool) -> None:
    with pytest.raises(KasparError), Broker(process=process, overrides={"num.partitions": "0"}):
        pass


def test_nothing_is_left_of_one_that_could_not_start(process: bool) -> None:
    broker = Broker(process=process, overrides={"metadata.log.dir": "/proc/no/such/folder"})
    with pytest.raises(KasparError), broker:
        pass
    assert not broker.data_dir.exists()


def test_the_port_is_that_of_the_first_listener(process: bool) -> None:
    listeners = {
        "listeners": "ONE://127.0.0.1:0,TWO://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
    }
    with Broker(process=process, overrides=listeners) as broker, RawClient(broker.port) as client:
        assert client.metadata().brokers[0].port == broker.port


def test_broken_invariant_fails_the_test_and_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("an invariant is broken")

    broker = Broker()
    broker.start()
    with RawClient(broker.port) as client:
        monkeypatch.setattr(ProducerIds, "next", broken)
        with pytest.raises(ConnectionError):
            client.new_producer_id()
    with pytest.raises(AssertionError, match="an invariant is broken"):
        broker.close()
    broker.close()
    monkeypatch.undo()
    with Broker() as healthy:
        _write_and_read(healthy, b"x")
    assert threading.main_thread().is_alive()


def test_how_fast_it_is_ready(capsys: pytest.CaptureFixture[str]) -> None:
    """Measured and said; how busy the machine is decides too much for a bound."""
    with Broker():
        pass  # loads the modules
    times = []
    for _ in range(5):
        started = time.perf_counter()
        with Broker():
            times.append(time.perf_counter() - started)
    started = time.perf_counter()
    with Broker(process=True):
        own_process = time.perf_counter() - started
    with capsys.disabled():
        print(f"\n  ready in {min(times) * 1000:.0f} ms in this process, {own_process * 1000:.0f} ms in its own")


def test_fixture(kaspar_broker: Broker) -> None:
    _write_and_read(kaspar_broker, b"x")
    assert kaspar_broker.process is False


pytest_plugins = ("pytester",)


def test_fixture_needs_no_import(pytester: pytest.Pytester) -> None:
    """A project that has Kaspar installed gets the fixture by its name."""
    pytester.makepyfile(
        """
        def test_one(kaspar_broker):
            assert kaspar_broker.bootstrap_servers
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)
