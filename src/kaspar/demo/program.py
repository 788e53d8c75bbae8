"""A program of the demo, as `kaspar pipeline` runs it. Arguments: its name, the bootstrap servers, a state folder.

Records that cannot be deserialized go to the dead-letter topic of the program.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from kaspar.demo import click_enrichment, stock_statistics
from kaspar.streams import KafkaStreams, Topology

TOPOLOGIES: Final[Mapping[str, Callable[[], Topology]]] = {
    "stock-statistics": stock_statistics.topology,
    "click-enrichment": click_enrichment.topology,
}


def dead_letters_of(name: str) -> str:
    return f"{name}-dead-letters"


def main(name: str, bootstrap: str, state_dir: str) -> None:
    settings = {
        "application.id": name,
        "bootstrap.servers": bootstrap,
        "processing.guarantee": "exactly_once_v2",
        "commit.interval.ms": 500,
        "state.dir": state_dir,
        "deserialization.exception.handler": "continue",
        "errors.dead.letter.queue.topic.name": dead_letters_of(name),
    }
    KafkaStreams(TOPOLOGIES[name](), settings).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
