"""Page views, completed with who looked and what they had searched for.

    python examples/streams/click_enrichment.py --bootstrap-server localhost:9092 --generate

Reads `page-views`, `searches` and the table `profiles`, whose keys are users; writes to `enriched-views`. The topology
is in kaspar.demo.click_enrichment: `kaspar demo` shows it at work.
"""

import sys
from pathlib import Path

from kaspar.demo.click_enrichment import topology
from kaspar.streams import KafkaStreams


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from kaspar.demo.events import clicks

    arguments = parse_arguments(__doc__)
    settings = {
        "application.id": "click-enrichment",
        "bootstrap.servers": arguments.bootstrap_server,
        "processing.guarantee": "exactly_once_v2",
    }
    with generating(arguments, clicks, ["page-views", "searches", "profiles"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
