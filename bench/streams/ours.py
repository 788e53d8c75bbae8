"""The programs in kaspar.streams: `python -m bench.streams.ours PROGRAM BOOTSTRAP APPLICATION GUARANTEE FOLDER`."""

import sys

from kaspar.streams import KafkaStreams, StreamsBuilder, TimeWindows, Topology, serdes


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.split(" "))
    words.group_by(lambda key, word: word).count("counts").to_stream().to("results")
    return builder.build()


def key_count() -> Topology:
    builder = StreamsBuilder()
    builder.stream("lines").group_by_key().count("counts").to_stream().to("results")
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
    topologies = {each.__name__: each for each in (word_count, key_count, windowed_count, table_join)}
    KafkaStreams(topologies[program](), settings).run()


if __name__ == "__main__":
    main()
