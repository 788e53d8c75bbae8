"""The settings of a streams program: Kafka's names, and `spark.*` for Spark's own settings.

Unknown names are rejected, with the name that was probably meant; known names without an effect are logged. Client
settings (`security.protocol`, `ssl.*`, `sasl.*`, and names that start with `consumer.`, `producer.` or `admin.`) are
those of kaspar's Spark data source.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from kaspar.base.errors import InvalidSetting
from kaspar.base.log import get_log
from kaspar.spark.kafka_settings import ConnectionSettings, connection_settings
from kaspar.streams.serdes import serde_for
from kaspar.streams.topology.context import MAX_REQUEST_SIZE, OnError, TaskSettings

log = get_log(__name__)

_AnyValue = TypeVar("_AnyValue")

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once_v2"
BROKERS_DEFAULT: Final = -1
"""The brokers choose the replication factor (KIP-464)."""

_MAX_OFFSETS: Final = 1_000_000
_MAX_BYTES: Final = 64 * 1024 * 1024
_ON_ERROR: Final = {"fail": OnError.FAIL, "continue": OnError.CONTINUE}
_JAVA_ERRORS: Final = "org.apache.kafka.streams.errors."
_JAVA_HANDLERS: Final = {
    "LogAndFailExceptionHandler": OnError.FAIL,
    "LogAndContinueExceptionHandler": OnError.CONTINUE,
    "LogAndFailProcessingExceptionHandler": OnError.FAIL,
    "LogAndContinueProcessingExceptionHandler": OnError.CONTINUE,
    "DefaultProductionExceptionHandler": OnError.FAIL,
}
_NAMES: Final = (
    "application.id",
    "bootstrap.servers",
    "processing.guarantee",
    "auto.offset.reset",
    "state.dir",
    "default.key.serde",
    "default.value.serde",
    "deserialization.exception.handler",
    "default.deserialization.exception.handler",
    "processing.exception.handler",
    "production.exception.handler",
    "default.production.exception.handler",
    "errors.dead.letter.queue.topic.name",
    "kaspar.late.topic.name",
    "kaspar.fail.on.data.loss",
    "commit.interval.ms",
    "max.offsets.per.trigger",
    "max.bytes.per.trigger",
    "replication.factor",
    "application.server",
    "kaspar.state.listener",
    "kaspar.metrics.listener",
    "client.id",
    "request.timeout.ms",
)
_WITHOUT_EFFECT: Final = frozenset(
    {
        "acceptable.recovery.lag",
        "buffered.records.per.partition",
        "built.in.metrics.version",
        "cache.max.bytes.buffering",
        "default.client.supplier",
        "default.dsl.store",
        "dsl.store.suppliers.class",
        "enable.metrics.push",
        "ensure.explicit.internal.resource.naming",
        "group.protocol",
        "log.summary.interval.ms",
        "max.task.idle.ms",
        "max.warmup.replicas",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "num.standby.replicas",
        "num.stream.threads",
        "poll.ms",
        "probing.rebalance.interval.ms",
        "processor.wrapper.class",
        "rack.aware.assignment.non_overlap_cost",
        "rack.aware.assignment.strategy",
        "rack.aware.assignment.tags",
        "rack.aware.assignment.traffic_cost",
        "repartition.purge.interval.ms",
        "rocksdb.config.setter",
        "state.cleanup.delay.ms",
        "statestore.cache.max.bytes",
        "task.assignor.class",
        "task.timeout.ms",
        "topology.optimization",
        "upgrade.from",
    }
)
"""Settings of Kafka Streams for features that Spark replaces or that do not exist here: caches, threads, standbys."""
_DECIDED_HERE: Final = {
    "default.timestamp.extractor": "pass a function to each source with timestamp_extractor= instead",
    "consumer.isolation.level": "a streams program always reads committed records",
    "consumer.group.id": "the group of a streams program is its application.id",
    "consumer.enable.auto.commit": "offsets are committed when their records are processed",
    "producer.transactional.id": "set processing.guarantee instead",
    "producer.enable.idempotence": "set processing.guarantee instead",
}
_CLIENT_PREFIXES: Final = ("security.", "ssl.", "sasl.")
_SPARK_PREFIX: Final = "spark."


@dataclass(frozen=True, slots=True)
class StreamsConfig:
    task_settings: TaskSettings
    connection: ConnectionSettings
    is_exactly_once: bool
    offset_reset: str
    state_dir: Path
    """The directory of this program: `state.dir` and the application id."""
    trigger_ms: int
    max_offsets: int
    max_bytes: int
    replication_factor: int
    fail_on_data_loss: bool
    """Whether the program stops if records were deleted before it has read them."""
    listener: tuple[str, int] | None
    """Host and port at which the contents of the stores are served; None if they are not."""
    metrics_listener: str | None
    """host:port of the page for Prometheus; None if there is none."""
    read_options: Mapping[str, str] = field(repr=False)
    """The options of the data source: connection settings and `consumer.` settings."""
    write_options: Mapping[str, str] = field(repr=False)
    spark: Mapping[str, str] = field(repr=False)

    @property
    def application_id(self) -> str:
        return self.task_settings.application_id

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "StreamsConfig":
        """Raises InvalidSetting."""
        given = {name: value for name, value in settings.items() if value is not None}
        for name in given:
            _check_name(name)
        read = _Reader(given)
        application_id = _application_id(read)
        clients = _client_settings(given)
        spark = {name: _text(value) for name, value in given.items() if name.startswith(_SPARK_PREFIX)}
        if idle := sorted(_WITHOUT_EFFECT & given.keys()):
            log.warning(f"These settings of Kafka Streams have no effect here: {', '.join(idle)}.")
        return cls(
            task_settings=_task_settings(read, application_id),
            connection=connection_settings(clients),
            is_exactly_once=read.choice(
                "processing.guarantee", {AT_LEAST_ONCE: False, EXACTLY_ONCE: True}, AT_LEAST_ONCE
            ),
            offset_reset=_offset_reset(read),
            state_dir=Path(read.text("state.dir") or default_state_dir()).expanduser().absolute() / application_id,
            trigger_ms=read.number("commit.interval.ms", 100),
            max_offsets=read.number("max.offsets.per.trigger", _MAX_OFFSETS, at_least=1),
            max_bytes=read.number("max.bytes.per.trigger", _MAX_BYTES, at_least=1),
            replication_factor=read.number("replication.factor", BROKERS_DEFAULT, at_least=BROKERS_DEFAULT),
            fail_on_data_loss=read.choice("kaspar.fail.on.data.loss", {"true": True, "false": False}, "true"),
            listener=_listener(read, "kaspar.state.listener", "application.server"),
            metrics_listener=_metrics_listener(read),
            read_options=_options(clients, given, "consumer."),
            write_options=_options(clients, given, "producer."),
            spark=spark,
        )


def default_state_dir() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state", "kaspar", "streams")


class _Reader:
    """Reads settings, whose values may be text or Python values."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def any(self, *names: str) -> Any:
        """The value of the first of these settings that is given."""
        return next((self._given[name] for name in names if name in self._given), None)

    def text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is None:
            return None
        text = _text(value).strip()
        if not text:
            raise InvalidSetting(f"{name} is empty: set a value or remove it.")
        return text

    def number(self, name: str, default: int, *, at_least: int = 0) -> int:
        value = self._given.get(name)
        if value is None:
            return default
        try:
            number = int(_text(value))
        except ValueError:
            raise InvalidSetting(f"{name} must be an integer, not {value!r}.") from None
        if number < at_least:
            raise InvalidSetting(f"{name} must be at least {at_least}, not {number}.")
        return number

    def choice(self, name: str, choices: Mapping[str, _AnyValue], default: str) -> _AnyValue:
        text = self.text(name) or default
        if text not in choices:
            raise InvalidSetting(f"{name} must be {' or '.join(choices)}, not {text!r}.")
        return choices[text]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- names ------------------------------------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    if (reason := _DECIDED_HERE.get(name)) is not None:
        raise InvalidSetting(f"The setting {name} cannot be given: {reason}.")
    if (
        name in _NAMES
        or name in _WITHOUT_EFFECT
        or name.startswith((_SPARK_PREFIX, "consumer.", "producer.", "admin.", *_CLIENT_PREFIXES))
    ):
        return
    close = difflib.get_close_matches(name, _NAMES, n=1)
    meant = f" Did you mean {close[0]}?" if close else " Client settings start with consumer. or producer."
    raise InvalidSetting(f"Unknown setting {name}.{meant}")


def _client_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings that all clients of the program share."""
    own = {"bootstrap.servers", "client.id", "request.timeout.ms"}
    clients = {name: _text(value) for name, value in given.items() if name in own or name.startswith(_CLIENT_PREFIXES)}
    if not clients.get("bootstrap.servers", "").strip():
        raise InvalidSetting("bootstrap.servers is required: host:port of one or more brokers.")
    return clients | {name.removeprefix("admin."): _text(value) for name, value in given.items() if _is_admin(name)}


def _is_admin(name: str) -> bool:
    return name.startswith(tuple(f"admin.{prefix}" for prefix in _CLIENT_PREFIXES))


def _options(clients: Mapping[str, str], given: Mapping[str, Any], prefix: str) -> dict[str, str]:
    own = {name.removeprefix(prefix): _text(value) for name, value in given.items() if name.startswith(prefix)}
    own.pop("auto.offset.reset", None)
    return {f"kafka.{name}": value for name, value in {**clients, **own}.items()}


# --- single settings --------------------------------------------------------------------------------------------------


def _application_id(read: _Reader) -> str:
    text = read.text("application.id")
    if text is None:
        raise InvalidSetting("application.id is required: the name of the program, its group and its internal topics.")
    if set(text) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") or text in (".", ".."):
        raise InvalidSetting(
            f"application.id must be a valid topic name prefix (letters, digits, '.', '_' and '-'), and {text!r} "
            "is not."
        )
    return text


def _offset_reset(read: _Reader) -> str:
    given = read.any("auto.offset.reset", "consumer.auto.offset.reset")
    text = "earliest" if given is None else _text(given).strip().lower()
    if text not in ("earliest", "latest"):
        raise InvalidSetting(f"auto.offset.reset must be earliest or latest, not {text!r}.")
    return text


def _task_settings(read: _Reader, application_id: str) -> TaskSettings:
    return TaskSettings(
        application_id=application_id,
        default_key_serde=serde_for(read.any("default.key.serde") or "text"),
        default_value_serde=serde_for(read.any("default.value.serde") or "text"),
        on_deserialization_error=_on_error(
            read, "deserialization.exception.handler", "default.deserialization.exception.handler"
        ),
        on_processing_error=_on_error(read, "processing.exception.handler"),
        on_production_error=_on_error(read, "production.exception.handler", "default.production.exception.handler"),
        dead_letter_topic=read.text("errors.dead.letter.queue.topic.name"),
        late_topic=read.text("kaspar.late.topic.name"),
        max_request_size=read.number("producer.max.request.size", MAX_REQUEST_SIZE),
    )


def _on_error(read: _Reader, name: str, older_name: str | None = None) -> OnError:
    given = read.any(name) if older_name is None else read.any(name, older_name)
    if given is None:
        return OnError.FAIL
    text = _text(given).strip()
    found = _ON_ERROR.get(text.lower()) or _JAVA_HANDLERS.get(text.removeprefix(_JAVA_ERRORS))
    if found is None:
        raise InvalidSetting(f"{name} must be fail or continue, not {text!r}. Other handlers cannot be used.")
    return found


def _metrics_listener(read: _Reader) -> str | None:
    found = _listener(read, "kaspar.metrics.listener")
    return None if found is None else f"{found[0]}:{found[1]}"


def _listener(read: _Reader, *names: str) -> tuple[str, int] | None:
    """Host and port from the first of these settings that is given."""
    name = next((each for each in names if read.text(each) is not None), names[0])
    text = read.text(name)
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 1 << 16):
        raise InvalidSetting(f"{name} must be host:port, not {text!r}.")
    return host.strip("[]"), int(port)
