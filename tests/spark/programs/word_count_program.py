"""The first program of the documentation, as a process."""

import sys

from kaspar.streams import KafkaStreams, StreamsBuilder


def main(bootstrap: str, state_dir: str, lines: str, results: str, name: str, *more: str) -> None:
    builder = StreamsBuilder()
    words = builder.stream(lines).flat_map_values(lambda line: line.lower().split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to(results)
    KafkaStreams(
        builder.build(),
        {
            "application.id": name,
            "bootstrap.servers": bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "state.dir": state_dir,
            "replication.factor": 1,
            "spark.driver.memory": "512m",
            **dict(setting.split("=", 1) for setting in more),
        },
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
