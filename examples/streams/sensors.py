"""Temperatures by room and ten seconds, from readings that arrive late and out of order.

    python examples/streams/sensors.py --bootstrap-server localhost:9092 --generate

Reads `readings`, whose keys are rooms; writes to `room-temperatures` with keys of room and window. A reading belongs
to the window of the time at which it was measured, not at which it arrived. A window waits five seconds longer for
late readings, and is then written once, as its final result; what comes even later is dropped.
"""

import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kaspar.streams import KafkaStreams, StreamsBuilder, Suppressed, TimeWindows, Topology, serdes

WINDOWS = TimeWindows.of_size(timedelta(seconds=10)).grace(timedelta(seconds=5))


@dataclass(frozen=True, slots=True)
class Reading:
    celsius: float
    at: int


@dataclass(frozen=True, slots=True)
class Temperatures:
    readings: int = 0
    lowest: float = float("inf")
    highest: float = float("-inf")

    def with_reading(self, celsius: float) -> "Temperatures":
        return Temperatures(self.readings + 1, min(self.lowest, celsius), max(self.highest, celsius))


def topology() -> Topology:
    builder = StreamsBuilder()
    readings = builder.stream(
        "readings",
        key_serde=serdes.text(),
        value_serde=serdes.structured(Reading),
        timestamp_extractor=lambda room, reading, timestamp: reading.at,
    )
    temperatures = (
        readings.group_by_key()
        .windowed_by(WINDOWS)
        .aggregate(
            Temperatures,
            lambda room, reading, temperatures: temperatures.with_reading(reading.celsius),
            "temperatures",
            value_serde=serdes.structured(Temperatures),
        )
        .suppress(Suppressed.until_window_closes())
    )
    temperatures.to_stream().to("room-temperatures", key_serde=serdes.windowed(serdes.text(), WINDOWS.size_ms))
    return builder.build()


def main() -> None:
    from examples.streams.command_line import generating, parse_arguments
    from examples.streams.generators import readings

    arguments = parse_arguments(__doc__)
    settings = {
        "application.id": "sensors",
        "bootstrap.servers": arguments.bootstrap_server,
        "processing.guarantee": "exactly_once_v2",
    }
    with generating(arguments, readings, ["readings"]):
        KafkaStreams(topology(), settings).run()


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))  # for the package examples
    main()
