"""An idempotent producer that writes numbered records to every partition of a topic until it is stopped."""

import time
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

from tests.chaos.actors.launch import IMPATIENT, Settings, read_settings, stop_at_sigterm
from tests.chaos.history import Acknowledged, Event
from tests.chaos.ledger import value_of

MOST_WAITING = 200  # records that are not acknowledged yet


@dataclass(frozen=True, slots=True, kw_only=True)
class FeederSettings(Settings):
    topic: str
    partitions: int
    pause_seconds: float  # between two records of a partition


class Feeder:
    def __init__(self, settings: FeederSettings) -> None:
        self.settings = settings
        self.journal = settings.journal()
        self._acknowledged: list[Event] = []
        self._producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap,
                **IMPATIENT,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 90_000,
                **settings.client,
            }
        )

    def run(self) -> int:
        stop = stop_at_sigterm()
        number = 0
        while not stop.is_set():
            for partition in range(self.settings.partitions):
                value = value_of(self.settings.actor, partition, number)
                self._producer.produce(self.settings.topic, value, partition=partition, on_delivery=self._delivered)
            number += 1
            self._poll(self.settings.pause_seconds)
            while len(self._producer) > MOST_WAITING and not stop.is_set():
                self._poll(0.01)
        left = self._producer.flush(90)
        self._note()
        return 1 if left else 0

    def _poll(self, seconds: float) -> None:
        """Take in what was delivered, for that long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._producer.poll(left)
            self._note()

    def _note(self) -> None:
        acknowledged, self._acknowledged = self._acknowledged, []
        if acknowledged:
            self.journal.note(*acknowledged)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise AssertionError(f"{message.value()!r} was not delivered: {error}")
        topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
        assert topic is not None
        assert partition is not None
        assert isinstance(value, bytes)
        self._acknowledged.append(
            Acknowledged(
                actor=self.settings.actor, topic=topic, partition=partition, offset=offset, value=value.decode()
            )
        )


if __name__ == "__main__":
    raise SystemExit(Feeder(read_settings(FeederSettings)).run())
