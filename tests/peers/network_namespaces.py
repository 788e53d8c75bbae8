"""Machines of a network, each a network namespace of Linux, joined by a switch whose links a test can disturb.

    with Network(["k1", "k2", "client"]) as network:
        broker = subprocess.Popen(network["k1"].command("kafka-server-start", "server.properties"))
        with network["client"].entered():               # this thread, and what it starts
            socket.create_connection((network["k1"].address, 9092))
        network.cut_off("k1")                           # both ways, from all others
        network.cut("k1", to="k2")                      # one way
        network.lose("k2", percent=10)
        network.slow_down("k2", kilobits_per_second=500)
        network.restore()

Packets are dropped in the switch, so neither end notices anything but silence. Each machine has a loopback of its own
and knows the others by name. The host's own network is not touched, and a namespace ends with the process that keeps
it, which ends with this one: nothing is left behind, even by a test that is killed. It takes root, and `ip`, `tc` and
`nft`, which are installed if they are missing; otherwise ToolMissingError is raised.
"""

import contextlib
import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.peers.debian import not_found, require_packages
from tests.peers.downloads import ToolMissingError

_TOOLS = ("ip", "tc", "nft", "nsenter", "unshare", "setpriv", "mount")
_PACKAGES = ("iproute2", "nftables", "util-linux", "mount")
_SUBNET = "10.73.0"
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_QUEUE_BYTES = 1 << 20  # what waits for a slow link; more is dropped


class _Namespace:
    """A network namespace, which lives as long as the process that was started in it."""

    def __init__(self) -> None:
        keep = "ip link set lo up && echo up && exec sleep infinity"
        self._keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", keep],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stderr is not None
        if self._keeper.stdout.readline() != "up\n":
            raise ToolMissingError(f"no network namespace can be made here: {self._keeper.stderr.read().strip()}")
        self.pid = self._keeper.pid
        self.path = f"/proc/{self.pid}/ns/net"

    def run(self, *command: str, script: str | None = None) -> None:
        """Run a tool in it; `script` is its input."""
        subprocess.run(["nsenter", f"--net={self.path}", *command], input=script, text=True, check=True)

    def end(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    address: str
    port: str  # of the switch
    namespace: _Namespace
    hosts: Path

    def command(self, *command: str) -> list[str]:
        """The command line that runs this command on the machine. The process is the command's own: it can be
        signalled."""
        with_hosts = f'mount --bind {self.hosts} /etc/hosts && exec "$@"'
        enter = ["nsenter", f"--net={self.namespace.path}", "unshare", "--mount"]
        return [*enter, "sh", "-c", with_hosts, "sh", *command]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Meanwhile this thread, and every thread and process that it starts, is on the machine. Only names are not
        known to it."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(self.namespace.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _set_namespace(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _set_namespace(before)
        finally:
            os.close(before)


class Network:
    def __init__(self, names: Sequence[str]) -> None:
        if os.geteuid() != 0:
            raise ToolMissingError("making network namespaces needs root")
        require_packages(_PACKAGES, lambda: not_found(_TOOLS))
        self._names = tuple(names)
        self._machines: dict[str, Machine] = {}
        self._cuts: set[tuple[str, str]] = set()  # from, to
        self._losses: dict[str, int] = {}  # in percent, by machine
        self._slow: set[str] = set()
        self._ended = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kaspar-network-")))
            self._switch = _Namespace()
            stack.callback(self._switch.end)
            try:
                self._switch.run("ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
                self._switch.run("ip", "link", "set", "switch", "up")
                self._switch.run("nft", "-f", "-", script=_EMPTY_TABLE)
            except subprocess.CalledProcessError as error:
                raise ToolMissingError(f"this kernel has no bridges or no nftables: {error}") from error
            hosts = folder / "hosts"
            for number, name in enumerate(self._names, start=1):
                namespace = _Namespace()
                stack.callback(namespace.end)
                machine = Machine(name, f"{_SUBNET}.{number}", f"port{number}", namespace, hosts)
                self._machines[name] = machine
                self._connect(machine)
            lines = ["127.0.0.1 localhost", *(f"{each.address} {each.name}" for each in self._machines.values())]
            hosts.write_text("".join(f"{line}\n" for line in lines))
            self._ended = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.close()

    def __getitem__(self, name: str) -> Machine:
        return self._machines[name]

    def _connect(self, machine: Machine) -> None:
        port, keeper = machine.port, str(machine.namespace.pid)
        plug = ["ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", keeper]
        self._switch.run(*plug)
        self._switch.run("ip", "link", "set", port, "master", "switch", "up")
        machine.namespace.run("ip", "address", "add", f"{machine.address}/24", "dev", "eth0")
        machine.namespace.run("ip", "link", "set", "eth0", "up")

    # -- faults --------------------------------------------------------------------------------------------------------

    def cut(self, source: str, *, to: str) -> None:
        """Nothing that `source` sends reaches `to`. The other way stays open."""
        self._cuts.add((source, to))
        self._apply()

    def cut_off(self, *names: str, from_: Sequence[str] | None = None) -> None:
        """Each of them is cut off both ways: from those machines, by default from all that are not named."""
        others = [name for name in (self._names if from_ is None else from_) if name not in names]
        for name in names:
            self._cuts |= {pair for other in others for pair in ((name, other), (other, name))}
        self._apply()

    def lose(self, name: str, *, percent: int) -> None:
        """Of the packets from and to this machine, so many are lost."""
        self._losses[name] = percent
        self._apply()

    def slow_down(self, name: str, *, kilobits_per_second: int) -> None:
        """The link of this machine, in both directions. What does not fit waits, and in the end is lost."""
        machine = self._machines[name]
        rate = ["rate", f"{kilobits_per_second}kbit", "burst", "16kb", "limit", str(_QUEUE_BYTES)]
        self._switch.run("tc", "qdisc", "replace", "dev", machine.port, "root", "tbf", *rate)
        machine.namespace.run("tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *rate)
        self._slow.add(name)

    def restore(self) -> None:
        """All links are whole, fast and without loss again."""
        self._cuts.clear()
        self._losses.clear()
        self._apply()
        while self._slow:
            machine = self._machines[self._slow.pop()]
            self._switch.run("tc", "qdisc", "delete", "dev", machine.port, "root")
            machine.namespace.run("tc", "qdisc", "delete", "dev", "eth0", "root")

    def _apply(self) -> None:
        cuts = [
            f'iifname "{self._machines[source].port}" oifname "{self._machines[target].port}" drop'
            for source, target in sorted(self._cuts)
        ]
        losses = [
            f'{end} "{self._machines[name].port}" numgen random mod 100 < {percent} drop'
            for name, percent in self._losses.items()
            for end in ("iifname", "oifname")
        ]
        added = "".join(f"add rule bridge faults forward {rule}\n" for rule in cuts + losses)
        self._switch.run("nft", "-f", "-", script=f"flush chain bridge faults forward\n{added}")


_EMPTY_TABLE = "add table bridge faults\nadd chain bridge faults forward { type filter hook forward priority 0; }\n"


def _set_namespace(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
