"""Translates the properties of Java's producers to librdkafka's settings."""

from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.tools.librdkafka.translation import CLASSES, NON_NEGATIVE, Bounded, Translated, Translation
from kaspar.tools.librdkafka.values import Number, choice, invalid

_ACKS: Final = ("all", "-1", "0", "1")
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_MAX_IN_FLIGHT_WITH_IDEMPOTENCE: Final = 5
_ROUND_ROBIN_PARTITIONER: Final = "org.apache.kafka.clients.producer.RoundRobinPartitioner"

_NUMBERS: Final = {
    "batch.size": Bounded("batch.size", Number("INT", 0), 1),
    "delivery.timeout.ms": Bounded("delivery.timeout.ms", Number("INT", 0)),
    "linger.ms": Bounded("linger.ms", NON_NEGATIVE, 0, 900_000),
    "max.in.flight.requests.per.connection": Bounded(
        "max.in.flight.requests.per.connection", Number("INT", 1), 1, 1_000_000
    ),
    "max.request.size": Bounded("message.max.bytes", Number("INT", 0), 1000, 1_000_000_000),
    "request.timeout.ms": Bounded("request.timeout.ms", Number("INT", 0), 1, 900_000),
    "retries": Bounded("retries", Number("INT", 0)),
    "transaction.timeout.ms": Bounded("transaction.timeout.ms", Number("INT"), 1000),
}


def producer_settings(properties: Mapping[str, str]) -> Translated:
    """Translate the properties. Raises InvalidSetting."""
    translation = Translation(properties, _NUMBERS, texts=("transactional.id",))
    translation.of("acks", lambda text: choice("acks", text, _ACKS))
    _set_compression(translation)
    _set_partitioner(translation)
    _set_idempotence(translation)
    _set_buffer(translation)
    _set_delivery_timeout(translation)
    if translation.flag("transaction.two.phase.commit.enable", default=False):
        raise InvalidSetting("transaction.two.phase.commit.enable is not supported: librdkafka has no such producer")
    translation.settings.setdefault("message.max.bytes", 1_048_576)
    return translation.finish()


def _set_compression(translation: Translation) -> None:
    """Java has a level for each codec, librdkafka one level for the codec in use."""
    translation.of("compression.type", lambda text: choice("compression.type", text, _CODECS))
    levels = {
        "gzip": (Number("INT", -1, 9), 9),
        "lz4": (Number("INT", 1, 17), 12),
        "zstd": (Number("INT", -131_072, 22), 12),
    }
    for codec, (number, highest) in levels.items():
        name = f"compression.{codec}.level"
        if (text := translation.take(name)) is None:
            continue
        level = number.parse(name, text)
        if translation.settings.get("compression.type") == codec:
            translation.settings["compression.level"] = max(-1, min(level, highest))


def _set_partitioner(translation: Translation) -> None:
    partitioner = "murmur2_random"  # Java's: by the hash of the key, and sticky for records without one
    if translation.flag("partitioner.ignore.keys", default=False):
        partitioner = "random"
    name = translation.take("partitioner.class")
    if name == _ROUND_ROBIN_PARTITIONER:
        partitioner = "random"
        translation.settings["sticky.partitioning.linger.ms"] = 0
        translation.warnings.append(
            "partitioner.class: librdkafka has no RoundRobinPartitioner; partitions are random."
        )
    elif name:
        raise invalid("partitioner.class", name, CLASSES)
    translation.settings["partitioner"] = partitioner


def _set_idempotence(translation: Translation) -> None:
    """Idempotence is enabled unless another setting conflicts with it. If it is enabled explicitly, a conflict is an
    error. Messages are those of Kafka's ProducerConfig.
    """
    asked_for = translation.flag("enable.idempotence", default=False)
    on = translation.flag("enable.idempotence", default=True)
    conflicts = []
    if translation.number("retries", 1) == 0:
        conflicts.append("Must set retries to non-zero when using the idempotent producer.")
    if translation.settings.get("acks", "all") not in ("all", "-1"):
        conflicts.append(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
        )
    if translation.number("max.in.flight.requests.per.connection", 5) > _MAX_IN_FLIGHT_WITH_IDEMPOTENCE:
        conflicts.append("Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer.")
    if conflicts and asked_for:
        raise InvalidSetting(conflicts[0])
    if not on and "transactional.id" in translation.settings:
        raise InvalidSetting("Cannot set a transactional.id without also enabling idempotence.")
    translation.settings["enable.idempotence"] = on and not conflicts
    if not translation.settings["enable.idempotence"]:
        translation.settings.setdefault("max.in.flight.requests.per.connection", _MAX_IN_FLIGHT_WITH_IDEMPOTENCE)


def _set_buffer(translation: Translation) -> None:
    if (text := translation.take("buffer.memory")) is not None:
        kib = NON_NEGATIVE.parse("buffer.memory", text) // 1024
        translation.settings["queue.buffering.max.kbytes"] = min(max(kib, 1), (1 << 31) - 1)
    if translation.properties.get("batch.size", "").strip() == "0":
        translation.settings["batch.num.messages"] = 1  # no batching


def _set_delivery_timeout(translation: Translation) -> None:
    linger = translation.number("linger.ms", 5)
    least = min(linger + translation.number("request.timeout.ms", 30_000), (1 << 31) - 1)
    given = "delivery.timeout.ms" in translation.settings
    delivery = translation.number("delivery.timeout.ms", 120_000)
    if given and delivery < least:
        raise InvalidSetting("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
    delivery = max(delivery, least)
    if "transactional.id" in translation.settings:  # librdkafka does not allow more than that
        delivery = min(delivery, translation.number("transaction.timeout.ms", 60_000))
    translation.settings["delivery.timeout.ms"] = delivery
    translation.settings["socket.timeout.ms"] = min(max(translation.number("request.timeout.ms", 30_000), 10), 300_000)
