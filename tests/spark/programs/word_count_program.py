"""The first program of the documentation, as a process; with the argument `joins` it also joins streams and a table."""

import sys

from kaspar.streams import JoinWindows, KafkaStreams, StreamsBuilder

JOINS = "joins"


def add_joins(builder: StreamsBuilder, prefix: str) -> None:
    """Records of `left` with their row in the table `names`, and with the record of `right` that has the same key."""
    left = builder.stream(f"{prefix}-left")
    left.join(builder.table(f"{prefix}-names", "names"), "{}+{}".format).to(f"{prefix}-named")
    windows = JoinWindows.of_time_difference(1_000).grace(3_600_000)
    left.join(builder.stream(f"{prefix}-right"), "{}+{}".format, windows).to(f"{prefix}-pairs")


def main(bootstrap: str, state_dir: str, lines: str, results: str, name: str, *more: str) -> None:
    builder = StreamsBuilder()
    words = builder.stream(lines).flat_map_values(lambda line: line.lower().split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to(results)
    if JOINS in more:
        add_joins(builder, lines)
    KafkaStreams(
        builder.build(),
        {
            "application.id": name,
            "bootstrap.servers": bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "state.dir": state_dir,
            "replication.factor": 1,
            "spark.driver.memory": "512m",
            **dict(setting.split("=", 1) for setting in more if setting != JOINS),
        },
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
