"""kafka-server-stop: sends SIGTERM to the brokers of this machine, which stop cleanly."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kaspar.base.processes import ask_to_stop, program_words, running_programs
from kaspar.tools import server_start


def running_brokers() -> Iterator[tuple[int, list[str]]]:
    """The process ids of the brokers visible to this user, and the arguments with which they were started."""
    for pid, words in running_programs():
        arguments = _arguments_of_broker(words)
        if arguments is not None:
            yield pid, arguments


def broker_arguments(words: Sequence[str]) -> list[str] | None:
    """The arguments of the broker with this command line; None if it is not a broker."""
    return _arguments_of_broker(program_words(words))


def _arguments_of_broker(rest: list[str]) -> list[str] | None:
    match [Path(word).name for word in rest[:2]]:
        case ["kafka-server-start" | "kaspar.tools.server_start", *_]:
            return rest[1:]
        case ["kaspar" | "kaspar.cli.main", "broker"]:
            return _arguments_of_run(rest[2:])
        case _:
            return None


def _arguments_of_run(words: Sequence[str]) -> list[str] | None:
    """The arguments of `kaspar broker`, which runs a broker unless the next word is another command."""
    match words:
        case ["list" | "describe" | "log-dirs" | "--help" | "-h", *_]:
            return None
        case ["run", *arguments]:
            return arguments
        case _:
            return list(words)


def node_id_of(arguments: Sequence[str], folder: Path) -> int | None:
    """The node id of a broker that was started in `folder`; None if its settings file can no longer be read."""
    from kaspar.base.errors import InvalidSetting
    from kaspar.config import BrokerConfig, load_settings

    known, _ = server_start.parser("kafka-server-start", file_required=False).parse_known_args(arguments)
    file = folder / known.properties if known.properties else None
    try:
        return BrokerConfig.of(load_settings(file, known.override)).node_id
    except InvalidSetting:
        return None


def command_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-server-stop",
        description="Stop the brokers that run on this machine, cleanly. Returns before they have stopped.",
        epilog="Example: kafka-server-stop --node-id 1",
    )
    parser.add_argument(
        "--process-role",
        choices=("broker", "controller"),
        help="accepted for compatibility; every process is broker and controller",
    )
    parser.add_argument("--node-id", type=int, help="stop only the broker with this node.id")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    chosen = command_options().parse_args(argv)
    stopped, refused = ask_to_stop(
        pid
        for pid, arguments in running_brokers()
        if chosen.node_id is None or node_id_of(arguments, Path(f"/proc/{pid}/cwd")) == chosen.node_id
    )
    for pid in refused:
        print(f"kafka-server-stop: the broker with process id {pid} belongs to another user", file=sys.stderr)
    if stopped == 0 and not refused:
        which = "" if chosen.node_id is None else f" with node.id {chosen.node_id}"
        print(f"No broker{which} to stop", file=sys.stderr)
    return 0 if stopped and not refused else 1


if __name__ == "__main__":
    sys.exit(main())
