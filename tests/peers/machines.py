"""A cluster on several machines, set up as docs/cluster.md says: on each a ZooKeeper server and a broker, with the
files of that page and started by its commands. The machines are network namespaces, and one more is for clients.

    with ClusterOfMachines(folder, SOON) as cluster, cluster.network["client"].entered():
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster.network.cut_off("k1")
        cluster.brokers[2].kill()
"""

import contextlib
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kaspar.base.processes import ProcessId, descendants
from tests.peers.kaspar import KasparProcess
from tests.peers.network_namespaces import Machine, Network
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

PAGE: Final = Path(__file__).parents[2] / "docs" / "cluster.md"
PROGRAMS: Final = Path(sys.executable).parent
NUMBERS: Final = (1, 2, 3)
CLIENT: Final = "client"
PORT: Final = 9092
_START_S: Final = 60.0
_END_OF_LOG: Final = 3000


def documented_file(first_line: str) -> str:
    """The file on the page that starts with this line."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(f"    {first_line}")
    end = next(number for number in range(start, len(lines)) if not lines[number].startswith("    "))
    return textwrap.dedent("\n".join(lines[start:end])) + "\n"


def changed(text: str, settings: Mapping[str, str]) -> str:
    """The file with these lines replaced, or added."""
    for name, value in settings.items():
        line = f"{name}={value}"
        text, count = re.subn(rf"^{re.escape(name)}=.*$", line, text, flags=re.MULTILINE)
        text += "" if count else f"{line}\n"
    return text


class MachineBroker(KasparProcess):
    """`kafka-server-start server.properties` on a machine."""

    def __init__(
        self, folder: Path, machine: Machine, properties: str, *, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, port=PORT, environment=environment)
        self.machine = machine
        self.host = machine.address
        self._properties = properties

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.properties_file.write_text(self._properties)

    def command(self) -> list[str]:
        return self.machine.command(*super().command())


class MachineZooKeeper:
    """`kaspar zookeeper zoo.cfg --id N` on a machine."""

    def __init__(self, folder: Path, machine: Machine, config: str, number: int) -> None:
        self._machine = machine
        self._number = number
        self._folder = folder
        self._config = config
        self._output = folder / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._server: list[ProcessId] = []  # the JVM

    def launch(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "zoo.cfg"
        file.write_text(self._config)
        command = (str(PROGRAMS / "kaspar"), "zookeeper", str(file), "--id", str(self._number), "--heap", "64m")
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._machine.command(*command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def text(self) -> str:
        """What the command has printed."""
        return self._output.read_text()

    def serves(self) -> bool:
        """Whether it has said so: it is part of a majority, or was."""
        assert self._process is not None
        assert self._process.poll() is None, self.text()
        return "ZooKeeper serves" in self.text()

    def start(self) -> None:
        self.launch()
        wait_until(self.serves, f"ZooKeeper {self._number} serves", seconds=_START_S)

    def kill(self) -> None:
        """SIGKILL; its JVM ends with it."""
        if self._process is None:
            return
        java = self.jvm()
        self._process.kill()
        self._process.wait()
        self._process = None
        wait_until(lambda: not any(each.is_running() for each in java), "the JVM has ended")

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(_START_S)
        self._process = None
        return code

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def jvm(self) -> list[ProcessId]:
        assert self._process is not None
        return descendants(ProcessId.of(self._process.pid))

    def signal(self, number: signal.Signals) -> None:
        """To the JVM."""
        for each in self.jvm():
            each.send(number)


class ClusterOfMachines:
    """`settings` and `zookeeper_settings` are lines that differ from the page's. With `by_name` brokers are known by
    the names of their machines, as on the page; otherwise by their addresses, so that a thread that has entered a
    machine can use them."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        zookeeper_settings: Mapping[str, str] | None = None,
        by_name: bool = False,
        environments: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.folder = folder
        self.network = Network([f"k{number}" for number in NUMBERS] + [CLIENT])
        self._settings = dict(settings)
        self._zookeeper_settings = dict(zookeeper_settings or {})
        self._by_name = by_name
        self._environments = environments or {}
        self.brokers: dict[int, MachineBroker] = {}
        self.zookeepers: dict[int, MachineZooKeeper] = {}
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def prepared(self) -> Iterator[Self]:
        """The machines are there, and nothing runs yet."""
        try:
            self._prepare()
            yield self
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        self.__exit__(None, None, None)

    def _prepare(self) -> None:
        self._stack.enter_context(self.network)
        for number in NUMBERS:
            machine = self.network[f"k{number}"]
            config = changed(
                documented_file("tickTime=2000"),
                {"dataDir": str(self.zookeeper_folder(number) / "data"), **self._zookeeper_settings},
            )
            properties = changed(
                documented_file("node.id=1"),
                {
                    "node.id": str(number),
                    "listeners": f"PLAINTEXT://{machine.name if self._by_name else machine.address}:{PORT}",
                    "log.dirs": str(self.broker_data(number)),
                    "broker.rack": f"room-{number}",
                    **self._settings,
                },
            )
            self.zookeepers[number] = MachineZooKeeper(self.zookeeper_folder(number), machine, config, number)
            self.brokers[number] = MachineBroker(
                self.folder / f"k{number}" / "broker",
                machine,
                properties,
                environment=self._environments.get(number),
            )

    def start(self) -> None:
        """Call it on a machine: the brokers are asked whether they are ready."""
        for server in self.zookeepers.values():
            server.launch()
        for broker in self.brokers.values():
            broker.prepare()
            broker.launch()
        for server in self.zookeepers.values():
            wait_until(server.serves, "ZooKeeper serves", seconds=_START_S)
        for broker in self.brokers.values():
            broker.wait_ready()
        self.wait_for_brokers()

    def zookeeper_folder(self, number: int) -> Path:
        return self.folder / f"k{number}" / "zookeeper"

    def disk(self, number: int) -> Path:
        """Where nothing but the broker's data is."""
        return self.folder / f"k{number}" / "disk"

    def broker_data(self, number: int) -> Path:
        return self.disk(number) / "data"

    def __enter__(self) -> Self:
        try:
            self._prepare()
            with self.network[CLIENT].entered():
                self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, broker in self.brokers.items():
            broker.kill()
            if error is not None:
                error.add_note(f"-- broker {number}:\n{broker.log_text()[-_END_OF_LOG:]}")
        for server in self.zookeepers.values():
            server.kill()
        self._stack.close()

    # -- asked of the cluster, on a machine that reaches it ------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def wait_for_brokers(self) -> None:
        """All of them know each other."""

        def know_each_other() -> bool:
            for broker in self.brokers.values():
                with RawClient(broker.port, host=broker.host) as client:
                    if len(client.metadata("none").brokers) != len(self.brokers):
                        return False
            return True

        wait_until(know_each_other, "the brokers know each other", seconds=_START_S)

    def unexpected_errors(self) -> list[str]:
        return [f"broker {number}: {each}" for number, b in self.brokers.items() for each in b.unexpected_errors()]
