"""`kaspar zookeeper [FILE]`: runs a ZooKeeper server in the foreground, alone or as a member of an ensemble."""

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.errors import KasparError
from kaspar.cli.command import Command

if TYPE_CHECKING:
    from kaspar.zookeeper import ServerConfig, ZooKeeperServer

_PAUSE_S: Final = 0.1
_PATIENCE_S: Final = 3.0
"""After this time without a majority, the command reports what it waits for."""


@click.command(
    "zookeeper",
    cls=Command,
    epilog="Example: kaspar zookeeper zoo.cfg --id 1; brokers use it with zookeeper.connect=HOST:2181.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--id",
    "number",
    type=int,
    metavar="N",
    help="Which server.N of FILE this is; saved in its dataDir at the first start.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("zookeeper"),
    metavar="FOLDER",
    help="Folder for data and settings without FILE (default: ./zookeeper).",
)
@click.option("--port", type=int, default=2181, help="Client port without FILE (default: 2181).")
@click.option(
    "--jaas",
    type=click.Path(path_type=Path),
    metavar="JAASFILE",
    help="SASL users: a JAAS file with a section Server (docs/zookeeper.md).",
)
@click.option("--heap", default="1g", metavar="SIZE", help="Maximum memory (default: 1g).")
def command(file: Path | None, number: int | None, folder: Path, port: int, jaas: Path | None, heap: str) -> int:
    """Run a ZooKeeper server until SIGTERM or Ctrl-C: the one bundled with PySpark. FILE has its settings, as in
    zoo.cfg. Without a file it runs a single server on 127.0.0.1. Servers with the same server.N lines in their files
    form an ensemble. Needs Java and kaspar[spark]."""
    from kaspar.zookeeper import ZooKeeperServer

    jaas_file = _checked_jaas_file(jaas)
    config = _own_config(folder, port, number) if file is None else _config_of(file, number)
    return _run(ZooKeeperServer(config, heap=heap, jaas_file=jaas_file))


def _checked_jaas_file(file: Path | None) -> Path | None:
    """Check the JAAS file, because with an invalid one ZooKeeper would start, but nobody could log in."""
    from kaspar.security.jaas import parse_jaas_file

    if file is None:
        return None
    try:
        sections = parse_jaas_file(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise KasparError(f"{file} cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, KasparError) as problem:
        raise KasparError(f"{file} is not a JAAS file: {problem}") from None
    if "Server" not in sections:
        raise KasparError(f"{file} has no section Server, which lists the users")
    return file.resolve()


def _own_config(folder: Path, port: int, number: int | None) -> "ServerConfig":
    from kaspar.zookeeper.config import write_config

    if number is not None:
        raise KasparError("--id requires a FILE with the members of the ensemble")
    if not 1 <= port <= 65_535:
        raise KasparError(f"the port must be between 1 and 65535, not {port}")
    return write_config(folder, client_port=port)


def _config_of(file: Path, number: int | None) -> "ServerConfig":
    from kaspar.zookeeper.config import read_config, write_id

    config = read_config(file)
    if number is not None:
        write_id(config, number)
    return config


def _run(server: "ZooKeeperServer") -> int:
    is_asked_to_end = False

    def end(number: int, frame: object) -> None:
        nonlocal is_asked_to_end
        is_asked_to_end = True
        server.terminate()

    earlier = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.start(ends_with_caller=True)
        if is_asked_to_end:  # the signal came before the process existed
            server.terminate()
        _report(server)
        server.wait()
    finally:
        server.stop()
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if not is_asked_to_end:
        raise server.failure()
    return 0


def _report(server: "ZooKeeperServer") -> None:
    """Print when clients can use the server, or what it waits for."""
    from kaspar.zookeeper import State

    config = server.config
    started, has_said = time.monotonic(), False
    while server.state is not State.SERVING:
        if not server.is_running:
            return
        if config.is_member and not has_said and time.monotonic() > started + _PATIENCE_S:
            has_said = True
            print("ZooKeeper is waiting for a majority of its ensemble.", flush=True)
        time.sleep(_PAUSE_S)
    ports = [f"{config.client_host}:{config.client_port}"] if config.client_port is not None else []
    if config.secure_client_port is not None:
        ports.append(f"{config.client_host}:{config.secure_client_port} (TLS)")
    place = f" on {' and '.join(ports)}" if ports else ""
    print(f"ZooKeeper serves{place}. Data: {config.data_dir}. Log: {config.log_file}.", flush=True)
