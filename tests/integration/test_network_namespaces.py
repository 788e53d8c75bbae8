"""The network of machines on which clusters are disturbed: its cuts are silent and go the way that they should."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.peers.missing import unless_missing
from tests.peers.network_namespaces import Network

NAMES = ("k1", "k2", "k3", "client")
PORT = 7
A_MOMENT_S = 0.3
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def machines() -> Iterator[Network]:
    with contextlib.ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(Network(NAMES)))


@pytest.fixture
def network(machines: Network) -> Iterator[Network]:
    try:
        yield machines
    finally:
        machines.restore()


class Listener:
    """A datagram socket on a machine: what arrives there can be counted without a way back."""

    def __init__(self, network: Network, name: str) -> None:
        with network[name].entered():
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((network[name].address, PORT))

    def arrived(self, wait_s: float, *, most: int = 1) -> int:
        """How many of so many: it waits that long for the first, and not long for each that follows."""
        self.socket.settimeout(wait_s)
        count = 0
        with contextlib.suppress(TimeoutError):
            while count < most:
                self.socket.recv(2000)
                count += 1
                self.socket.settimeout(A_MOMENT_S)
        return count

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


def send(network: Network, source: str, target: str, count: int = 1, size: int = 1) -> None:
    with network[source].entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            sender.sendto(bytes(size), (network[target].address, PORT))


def reaches(network: Network, source: str, target: str, wait_s: float = PATIENCE_S) -> bool:
    with Listener(network, target) as listener:
        send(network, source, target)
        return listener.arrived(wait_s) == 1


def test_every_machine_reaches_every_other_and_knows_its_name(network: Network) -> None:
    for source in NAMES:
        for target in NAMES:
            assert source == target or reaches(network, source, target)
    done = subprocess.run(network["k1"].command("getent", "hosts", "k3"), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [network["k3"].address, "k3"]


def test_a_machine_has_a_loopback_of_its_own(network: Network) -> None:
    with network["k1"].entered(), socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), A_MOMENT_S):
            pass
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), A_MOMENT_S):
        pass


def test_a_cut_goes_one_way(network: Network) -> None:
    network.cut("k1", to="k2")
    assert not reaches(network, "k1", "k2", A_MOMENT_S)
    assert reaches(network, "k2", "k1")
    assert reaches(network, "k1", "k3")
    network.restore()
    assert reaches(network, "k1", "k2")


def test_a_machine_that_is_cut_off_hears_silence(network: Network) -> None:
    with network["k1"].entered():
        server = socket.create_server((network["k1"].address, 0))
    with server:
        port = server.getsockname()[1]
        with network["client"].entered():
            connected = socket.create_connection((network["k1"].address, port), PATIENCE_S)
        with connected:
            network.cut_off("k1")
            connected.sendall(b"lost for now")
            connected.settimeout(A_MOMENT_S)
            with pytest.raises(TimeoutError):
                connected.recv(1)
            assert reaches(network, "k2", "k3")
            network.restore()
            accepted, _ = server.accept()
            with accepted:
                accepted.settimeout(PATIENCE_S)
                assert accepted.recv(100) == b"lost for now", "TCP sends it again"


def test_machines_are_cut_off_from_some(network: Network) -> None:
    network.cut_off("k1", "k2", from_=["k3"])
    assert reaches(network, "k1", "k2")
    assert reaches(network, "k1", "client")
    assert not reaches(network, "k3", "k2", A_MOMENT_S)
    assert not reaches(network, "k1", "k3", A_MOMENT_S)


def test_packets_are_lost(network: Network) -> None:
    network.lose("k2", percent=30)
    with Listener(network, "k2") as listener:
        send(network, "k1", "k2", count=200)
        assert 0 < listener.arrived(PATIENCE_S, most=200) < 200


def test_a_link_is_slow(network: Network) -> None:
    """50 kilobytes at 200 kilobits in a second, of which 16 kilobytes go at once: more than a second."""
    network.slow_down("k2", kilobits_per_second=200)
    with Listener(network, "k2") as listener:
        start = time.monotonic()
        send(network, "k1", "k2", count=50, size=1000)
        assert listener.arrived(PATIENCE_S, most=50) == 50
        assert time.monotonic() - start > 1.0
