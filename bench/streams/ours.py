"""The programs in kaspar.streams: `python -m bench.streams.ours PROGRAM BOOTSTRAP APPLICATION GUARANTEE FOLDER`."""

import sys

from kaspar.streams import KafkaStreams, StreamsBuilder, TimeWindows, Topology, serdes


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.split(" "))
    words.group_by(lambda key, word: word).count("counts").to_stream().to("results")
    return builder.build()


def windowed_count() -> Topology:
    builder = StreamsBuilder()
    events = builder.stream("lines").group_by_key()
    events.windowed_by(TimeWindows.of_size(10_000)).count("counts").to_stream().to("results")
    return builder.build()


def table_join() -> Topology:
    builder = StreamsBuilder()
    names = builder.table("names", "names")
    builder.stream("lines").join(names, lambda line, name: f"{name} {line}").to("results")
    return builder.build()


def main() -> None:
    program, bootstrap, application, guarantee, folder = sys.argv[1:]
    settings = {
        "application.id": application,
        "bootstrap.servers": bootstrap,
        "processing.guarantee": guarantee,
        "state.dir": folder,
        "default.value.serde": serdes.text(),
    }
    topology = {"word_count": word_count, "windowed_count": windowed_count, "table_join": table_join}[program]()
    KafkaStreams(topology, settings).run()


if __name__ == "__main__":
    main()
