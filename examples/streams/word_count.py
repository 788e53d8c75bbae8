"""How often each word has occurred in the lines of a topic.

    python examples/streams/word_count.py --bootstrap-server localhost:9092 --generate

Reads `lines`; writes each new count to `word-counts`: the word is the key, and the count a Java Long.
"""

import re
import sys
from pathlib import Path

from kaspar.streams import KafkaStreams, StreamsBuilder, Topology

WORD = re.compile(r"\w+")


def topology() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: WORD.findall(line.lower()))
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    return builder.build()


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from examples.streams.generators import lines

    arguments = parse_arguments(__doc__)
    settings = {
        "application.id": "word-count",
        "bootstrap.servers": arguments.bootstrap_server,
        "processing.guarantee": "exactly_once_v2",
    }
    with generating(arguments, lines, ["lines"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
