"""The settings of Java's producer that the load honours. Defaults and error messages are Kafka's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.client.delivery_terms import DeliveryTerms
from kaspar.records import Codec
from kaspar.tools.librdkafka.values import Number, boolean, choice
from kaspar.tools.perf.properties import number

_ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}
_CODECS: Final = {codec.name.lower(): codec for codec in Codec}
_LEVELS: Final = {
    Codec.GZIP: Number("INT", -1, 9),
    Codec.LZ4: Number("INT", 1, 17),
    Codec.ZSTD: Number("INT", -131_072, 22),
}
_LONG: Final = Number("LONG", 0)
_MOST_IN_FLIGHT: Final = 5  # with idempotence


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    terms: DeliveryTerms
    idempotent: bool
    codec: Codec
    level: int | None
    batch_size: int
    linger_ms: int
    transactional_id: str | None
    transaction_timeout_ms: int


def producer_settings(properties: Mapping[str, str]) -> ProducerSettings:
    """Parse the settings. Raises InvalidSetting."""
    usual = DeliveryTerms()
    acks = _ACKS[choice("acks", properties.get("acks", "all"), tuple(_ACKS))]
    codec = _CODECS[choice("compression.type", properties.get("compression.type", "none"), tuple(_CODECS))]
    in_flight = "max.in.flight.requests.per.connection"
    terms = DeliveryTerms(
        acks=acks,
        max_in_flight=number(properties, in_flight, usual.max_in_flight, kind=Number("INT", 1)),
        retries=number(properties, "retries", usual.retries),
        max_request_size=number(properties, "max.request.size", usual.max_request_size),
        buffer_memory=number(properties, "buffer.memory", usual.buffer_memory, kind=_LONG),
        request_timeout_ms=number(properties, "request.timeout.ms", usual.request_timeout_ms),
        delivery_timeout_ms=number(properties, "delivery.timeout.ms", usual.delivery_timeout_ms),
        max_block_ms=number(properties, "max.block.ms", usual.max_block_ms, kind=_LONG),
        retry_backoff_ms=number(properties, "retry.backoff.ms", usual.retry_backoff_ms, kind=_LONG),
        retry_backoff_max_ms=number(properties, "retry.backoff.max.ms", usual.retry_backoff_max_ms, kind=_LONG),
    )
    return ProducerSettings(
        terms=terms,
        idempotent=_is_idempotent(properties, terms),
        codec=codec,
        level=_level(properties, codec),
        batch_size=number(properties, "batch.size", 16_384),
        linger_ms=number(properties, "linger.ms", 5, kind=_LONG),
        transactional_id=properties.get("transactional.id"),
        transaction_timeout_ms=number(properties, "transaction.timeout.ms", 60_000),
    )


def _level(properties: Mapping[str, str], codec: Codec) -> int | None:
    name = f"compression.{codec.name.lower()}.level"
    if codec not in _LEVELS or name not in properties:
        return None
    level = _LEVELS[codec].parse(name, properties[name])
    return None if codec is Codec.GZIP and level == -1 else level


def _is_idempotent(properties: Mapping[str, str], terms: DeliveryTerms) -> bool:
    """Idempotence as in Kafka's ProducerConfig: enabled unless disabled, or in conflict with another setting. A
    conflict is an error if idempotence or transactions are requested.
    """
    asked = "enable.idempotence" in properties
    transactional = "transactional.id" in properties
    if asked and not boolean("enable.idempotence", properties["enable.idempotence"]):
        if transactional:
            raise InvalidSetting("Cannot set a transactional.id without also enabling idempotence.")
        return False
    problem = None
    if terms.retries == 0:
        problem = "Must set retries to non-zero when using the idempotent producer."
    elif terms.acks != -1:
        problem = (
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
        )
    elif terms.max_in_flight > _MOST_IN_FLIGHT:
        problem = "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer."
    if problem is not None and (asked or transactional):
        raise InvalidSetting(problem)
    return problem is None
