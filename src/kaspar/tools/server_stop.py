"""kafka-server-stop: ask the brokers of this machine to stop cleanly."""

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def running_brokers() -> Iterator[tuple[int, list[str]]]:
    """The process ids and command lines of the brokers this user may see."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue
        for position, word in enumerate(words[:3]):
            name = Path(word).name
            if name == "kafka-server-start" or (name == "kaspar" and words[position + 1 : position + 2] == ["broker"]):
                yield int(entry.name), words[position:]
                break


def node_id_of(pid: int, words: Sequence[str]) -> str | None:
    """The node id a broker was started with, as far as its command line and its settings file tell."""
    from kaspar.config import read_properties

    found = None
    files = [word for word in words[1:] if word.endswith(".properties")]
    for file in files[:1]:
        try:
            values = read_properties((Path(f"/proc/{pid}/cwd") / file).read_text())
        except OSError:
            continue
        found = values.get("node.id", values.get("broker.id"))
    for before, word in itertools.pairwise(words):
        name, _, value = word.partition("=")
        if before == "--override" and name in ("node.id", "broker.id"):
            found = value
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kafka-server-stop", description="Stop the brokers that run on this machine.")
    parser.add_argument("--process-role", choices=("broker", "controller"), help="accepted as Kafka's script does")
    parser.add_argument("--node-id", help="stop only the broker with this node.id")
    arguments = parser.parse_args(argv)
    stopped = 0
    for pid, words in running_brokers():
        if arguments.node_id is not None and node_id_of(pid, words) != arguments.node_id:
            continue
        os.kill(pid, signal.SIGTERM)
        stopped += 1
    if stopped == 0:
        which = "" if arguments.node_id is None else f" with node.id {arguments.node_id}"
        print(f"No broker{which} to stop", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
