"""The options of a write (`df.write` and `df.writeStream`), parsed on the driver.

Names, defaults and checks are those of Spark's own sink and, for `kafka.*`, of Apache Kafka's producer. The one default
that differs is `kafka.batch.size`: a sink knows that more rows follow, so it need not send small batches. Producer
settings that do not apply here, such as linger.ms, are accepted and have no effect.

Options are parsed for every micro-batch, in a process that may be new: this module loads neither client nor codecs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from kaspar.spark.formats.encoding_options import EncodingOptions
from kaspar.spark.kafka_settings import (
    PREFIX,
    ConnectionSettings,
    InvalidOption,
    connection_settings,
    kafka_settings,
    whole_number,
)
from kaspar.spark.option_names import WRITE_OPTIONS, refuse_misspelled

if TYPE_CHECKING:
    from kaspar.client.delivery_terms import DeliveryTerms
    from kaspar.records.codec import Codec
    from kaspar.spark.formats.registered_encoder import PlannedEncoding

T = TypeVar("T")

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
GuaranteeName = Literal["at-least-once", "exactly-once"]

_MAX_INT = (1 << 31) - 1
_MAX_LONG = (1 << 63) - 1
_IDEMPOTENT_IN_FLIGHT = 5  # a broker keeps the last five batches of a producer

_BOOLEANS = {"true": True, "false": False}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LEVELS = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131_072, 22)}

_REFUSED = {
    "key.serializer": "keys are binary or strings, or in the format of the option 'key.format'",
    "value.serializer": "values are binary or strings, or in the format of the option 'value.format'",
    "partitioner.class": "use a partition column to choose partitions yourself",
    "interceptor.classes": "Java interceptors cannot run here",
    "transactional.id": "use guarantee = exactly-once, which manages transactional ids",
}


class ProducerSettings(NamedTuple):
    """The settings of Kafka's producer that apply here."""

    acks: int = -1
    enable_idempotence: bool = True
    compression_type: str = "none"
    compression_level: int | None = None
    """None for the codec's default."""
    batch_size: int = 512 * 1024
    max_request_size: int = 1024 * 1024
    buffer_memory: int = 32 * 1024 * 1024
    max_in_flight: int = _IDEMPOTENT_IN_FLIGHT
    retries: int = _MAX_INT
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    max_block_ms: int = 60_000
    transaction_timeout_ms: int | None = None
    """None if not given."""
    ignore_keys: bool = False

    @property
    def codec(self) -> "Codec":
        from kaspar.records.codec import Codec

        return Codec[self.compression_type.upper()]

    @property
    def terms(self) -> "DeliveryTerms":
        from kaspar.client.delivery_terms import DeliveryTerms

        return DeliveryTerms(
            acks=self.acks,
            max_in_flight=self.max_in_flight,
            retries=self.retries,
            max_request_size=self.max_request_size,
            buffer_memory=self.buffer_memory,
            request_timeout_ms=self.request_timeout_ms,
            delivery_timeout_ms=self.delivery_timeout_ms,
            max_block_ms=self.max_block_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    connection: ConnectionSettings
    topic: str | None
    """The topic of all rows. None if each row names its own in the `topic` column."""
    guarantee: GuaranteeName
    producer: ProducerSettings
    query: str | None
    """txnAppId: the name under which batches of this writer are counted."""
    version: int | None
    """txnVersion: the number of the batch."""
    declared: tuple[EncodingOptions, ...] = ()
    """The columns that are encoded, key or value, as declared."""
    encodings: tuple["PlannedEncoding", ...] = ()
    """The encodings of these columns, once their schemas are known (schema.py)."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "WriteOptions":
        """Parse the options. Raises InvalidOption."""
        refuse_misspelled(options, WRITE_OPTIONS)
        given = {name.lower(): value for name, value in options.items()}
        settings = kafka_settings(given)
        connection = connection_settings(settings)
        for name, reason in _REFUSED.items():
            if name in settings:
                raise InvalidOption(f"Option '{PREFIX}{name}' is not supported: {reason}.")
        topic = given["topic"].strip() if "topic" in given else None
        if topic == "":
            raise InvalidOption("The option 'topic' is empty: set the topic to write to, or add a topic column.")
        guarantee = given.get("guarantee", AT_LEAST_ONCE).strip().lower()
        if guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
            raise InvalidOption(f"The option 'guarantee' must be {AT_LEAST_ONCE} or {EXACTLY_ONCE}, not '{guarantee}'.")
        producer = _producer_settings(settings, connection.request_timeout_ms)
        exactly_once = guarantee == EXACTLY_ONCE
        if exactly_once and not producer.enable_idempotence:
            raise InvalidOption(
                f"guarantee = {EXACTLY_ONCE} requires an idempotent producer: keep the defaults of kafka.acks, "
                "kafka.retries, kafka.enable.idempotence and kafka.max.in.flight.requests.per.connection."
            )
        query, version = _query_and_version(given)
        if query is not None and not exactly_once:
            raise InvalidOption(f"The options 'txnAppId' and 'txnVersion' require guarantee = {EXACTLY_ONCE}.")
        return cls(
            connection=connection,
            topic=topic,
            guarantee=EXACTLY_ONCE if exactly_once else AT_LEAST_ONCE,
            producer=producer,
            query=query,
            version=version,
            declared=tuple(
                each for each in (EncodingOptions.of(given, "key"), EncodingOptions.of(given, "value")) if each
            ),
        )


def _query_and_version(given: Mapping[str, str]) -> tuple[str | None, int | None]:
    query = given.get("txnappid")
    if (query is None) != ("txnversion" not in given):
        raise InvalidOption("The options 'txnAppId' and 'txnVersion' must be given together.")
    if query is None:
        return None, None
    if not query.strip():
        raise InvalidOption("The option 'txnAppId' is empty: set a name for this writer.")
    return query, whole_number({"txnVersion": given["txnversion"]}, "txnVersion", 0)


# --- producer settings ------------------------------------------------------------------------------------------------


def _producer_settings(settings: Mapping[str, str], request_timeout_ms: int) -> ProducerSettings:
    usual = ProducerSettings()
    acks = _choice(settings, "acks", {"all": -1, "-1": -1, "0": 0, "1": 1}, usual.acks)
    retries = _number(settings, "retries", usual.retries)
    max_in_flight = _number(settings, "max.in.flight.requests.per.connection", usual.max_in_flight, lowest=1)
    compression_type = _choice(settings, "compression.type", {name: name for name in _CODECS}, usual.compression_type)
    has_timeout = "transaction.timeout.ms" in settings
    return ProducerSettings(
        acks=acks,
        enable_idempotence=_idempotence(settings, acks, retries, max_in_flight),
        compression_type=compression_type,
        compression_level=_compression_level(settings, compression_type),
        batch_size=_number(settings, "batch.size", usual.batch_size),
        max_request_size=_number(settings, "max.request.size", usual.max_request_size),
        buffer_memory=_number(settings, "buffer.memory", usual.buffer_memory, highest=_MAX_LONG),
        max_in_flight=max_in_flight,
        retries=retries,
        retry_backoff_ms=_number(settings, "retry.backoff.ms", usual.retry_backoff_ms, highest=_MAX_LONG),
        retry_backoff_max_ms=_number(settings, "retry.backoff.max.ms", usual.retry_backoff_max_ms, highest=_MAX_LONG),
        request_timeout_ms=request_timeout_ms,
        delivery_timeout_ms=_delivery_timeout_ms(settings, usual.delivery_timeout_ms, request_timeout_ms),
        max_block_ms=_number(settings, "max.block.ms", usual.max_block_ms, highest=_MAX_LONG),
        transaction_timeout_ms=_number(settings, "transaction.timeout.ms", 0, lowest=1) if has_timeout else None,
        ignore_keys=_choice(settings, "partitioner.ignore.keys", _BOOLEANS, usual.ignore_keys),
    )


def _number(settings: Mapping[str, str], name: str, default: int, *, lowest: int = 0, highest: int = _MAX_INT) -> int:
    value = whole_number(settings, name, default, at_least=lowest, prefix=PREFIX)
    if value > highest:
        raise InvalidOption(f"Option '{PREFIX}{name}' must be at most {highest}, not {value}.")
    return value


def _choice(settings: Mapping[str, str], name: str, choices: Mapping[str, T], default: T) -> T:
    text = settings.get(name)
    if text is None:
        return default
    if (value := choices.get(text.strip().lower())) is None:
        raise InvalidOption(f"Option '{PREFIX}{name}' must be one of {', '.join(choices)}, not {text!r}.")
    return value


def _compression_level(settings: Mapping[str, str], compression_type: str) -> int | None:
    """The compression level of the codec. Levels of other codecs are ignored."""
    name = f"compression.{compression_type}.level"
    if compression_type not in _LEVELS or name not in settings:
        return None
    if compression_type == "gzip" and settings[name].strip() == "-1":
        return None
    lowest, highest = _LEVELS[compression_type]
    return _number(settings, name, lowest, lowest=lowest, highest=highest)


def _idempotence(settings: Mapping[str, str], acks: int, retries: int, max_in_flight: int) -> bool:
    """Whether the producer is idempotent, as in Kafka's ProducerConfig: yes, unless disabled or ruled out by another
    setting; a conflict is an error."""
    if not _choice(settings, "enable.idempotence", _BOOLEANS, True):
        return False
    problem = None
    if retries == 0:
        problem = "Must set retries to non-zero when using the idempotent producer."
    elif acks != -1:
        problem = "Must set acks to all in order to use the idempotent producer."
    elif max_in_flight > _IDEMPOTENT_IN_FLIGHT:
        problem = "Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer."
    if problem is not None and "enable.idempotence" in settings:
        raise InvalidOption(problem)
    return problem is None


def _delivery_timeout_ms(settings: Mapping[str, str], usual: int, request_timeout_ms: int) -> int:
    delivery_timeout_ms = _number(settings, "delivery.timeout.ms", usual)
    if delivery_timeout_ms < request_timeout_ms and "delivery.timeout.ms" in settings:
        raise InvalidOption(
            f"Option '{PREFIX}delivery.timeout.ms' must be at least request.timeout.ms, which is {request_timeout_ms}."
        )
    return max(delivery_timeout_ms, request_timeout_ms)
