"""A log, divided: errors to one topic, warnings to another, the rest dropped. Every record is looked at by itself.

    python examples/streams/log_filter.py --bootstrap-server localhost:9092 --generate

Reads the lines of `log-lines`; writes to `log-errors` and `log-warnings`, in JSON and with the host as key. Lines of
another form, such as those of stack traces, are dropped.
"""

import re
import sys
from pathlib import Path

from kaspar.streams import KafkaStreams, StreamsBuilder, Topology, serdes

LINE = re.compile(r"(?P<level>DEBUG|INFO|WARN|ERROR) (?P<service>\w+) (?P<message>.+)")


def parse(line: str) -> list[dict[str, str]]:
    """The entry of a line, or none."""
    found = LINE.fullmatch(line)
    return [] if found is None else [found.groupdict()]


def topology() -> Topology:
    builder = StreamsBuilder()
    entries = builder.stream("log-lines").flat_map_values(parse)
    branches = (
        entries.split(name="level-")
        .branch(lambda host, entry: entry["level"] == "ERROR", "errors")
        .branch(lambda host, entry: entry["level"] == "WARN", "warnings")
        .no_default_branch()
    )
    branches["errors"].to("log-errors", value_serde=serdes.json())
    branches["warnings"].to("log-warnings", value_serde=serdes.json())
    return builder.build()


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from examples.streams.generators import log_lines

    arguments = parse_arguments(__doc__)
    settings = {"application.id": "log-filter", "bootstrap.servers": arguments.bootstrap_server}
    with generating(arguments, log_lines, ["log-lines"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
