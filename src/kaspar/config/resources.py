"""The settings of groups and of client-metrics subscriptions, the other resources of AlterConfigs."""

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from kaspar.base.errors import ErrorCode, InvalidSetting, Refused
from kaspar.config.broker import BrokerConfig
from kaspar.config.checks import Check, at_least, one_of
from kaspar.config.declaration import Settings, Synonym, setting
from kaspar.config.kinds import BOOLEAN, DISTINCT_LIST, INT, STRING
from kaspar.config.reasons import NO_SHARE_GROUPS, NO_STREAMS_GROUPS

_DURATION = re.compile(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


def _offset_reset() -> Check[str]:
    def problem(value: str) -> str | None:
        kind, colon, duration = value.partition(":")
        good = value in ("earliest", "latest") or (kind == "by_duration" and colon and _DURATION.fullmatch(duration))
        return None if good else "must be earliest, latest or by_duration:PnDTnHnMn.nS"

    return Check(problem, "`earliest`, `latest` or `by_duration:PnDTnHnMn.nS`")


def _broker(name: str) -> tuple[Synonym, ...]:
    return (Synonym(f"group.{name}"),)


class GroupConfig(Settings):
    """The settings that one group may override."""

    consumer_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        synonyms=_broker("consumer.assignment.interval.ms"),
        doc="The least time between two assignments of a consumer group.",
    )
    consumer_heartbeat_interval_ms: int = setting(
        INT,
        5000,
        at_least(1),
        synonyms=_broker("consumer.heartbeat.interval.ms"),
        doc="How often members of a consumer group send heartbeats.",
    )
    consumer_session_timeout_ms: int = setting(
        INT,
        45_000,
        at_least(1),
        synonyms=_broker("consumer.session.timeout.ms"),
        doc="A member of a consumer group silent for this long is removed.",
    )
    share_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        synonyms=_broker("share.assignment.interval.ms"),
        doc="The least time between two assignments of a share group.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_auto_offset_reset: str = setting(
        STRING,
        "latest",
        _offset_reset(),
        doc="Where a share group begins on a partition it has no state for.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_delivery_count_limit: int = setting(
        INT,
        5,
        at_least(2),
        synonyms=_broker("share.delivery.count.limit"),
        doc="The maximum number of times that a record is delivered to a share group.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_heartbeat_interval_ms: int = setting(
        INT,
        5000,
        at_least(1),
        synonyms=_broker("share.heartbeat.interval.ms"),
        doc="How often members of a share group send heartbeats.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_isolation_level: str = setting(
        STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        doc="Whether a share group sees records of transactions that are not committed.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_partition_max_record_locks: int = setting(
        INT,
        2000,
        at_least(100),
        synonyms=_broker("share.partition.max.record.locks"),
        doc="How many records of a partition may be in delivery to a share group.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_record_lock_duration_ms: int = setting(
        INT,
        30_000,
        at_least(1000),
        synonyms=_broker("share.record.lock.duration.ms"),
        doc="How long a delivered record stays locked for its consumer.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_renew_acknowledge_enable: bool = setting(
        BOOLEAN,
        True,
        doc="Whether a consumer of a share group may renew the lock of a record.",
        not_honoured=NO_SHARE_GROUPS,
    )
    share_session_timeout_ms: int = setting(
        INT,
        45_000,
        at_least(1),
        synonyms=_broker("share.session.timeout.ms"),
        doc="A member of a share group silent for this long is removed.",
        not_honoured=NO_SHARE_GROUPS,
    )
    streams_assignment_interval_ms: int = setting(
        INT,
        1000,
        at_least(0),
        synonyms=_broker("streams.assignment.interval.ms"),
        doc="The least time between two assignments of a streams group.",
        not_honoured=NO_STREAMS_GROUPS,
    )
    streams_heartbeat_interval_ms: int = setting(
        INT,
        5000,
        at_least(1),
        synonyms=_broker("streams.heartbeat.interval.ms"),
        doc="How often members of a streams group send heartbeats.",
        not_honoured=NO_STREAMS_GROUPS,
    )
    streams_initial_rebalance_delay_ms: int = setting(
        INT,
        3000,
        at_least(0),
        synonyms=_broker("streams.initial.rebalance.delay.ms"),
        doc="How long a new streams group waits for more members.",
        not_honoured=NO_STREAMS_GROUPS,
    )
    streams_num_standby_replicas: int = setting(
        INT,
        0,
        at_least(0),
        synonyms=_broker("streams.num.standby.replicas"),
        doc="How many standby replicas each task gets.",
        not_honoured=NO_STREAMS_GROUPS,
    )
    streams_session_timeout_ms: int = setting(
        INT,
        45_000,
        at_least(1),
        synonyms=_broker("streams.session.timeout.ms"),
        doc="A member of a streams group silent for this long is removed.",
        not_honoured=NO_STREAMS_GROUPS,
    )


class ClientMetricsConfig(Settings):
    """A subscription: which clients push which metrics, and how often."""

    interval_ms: int = setting(INT, 300_000, doc="How often the clients push: from 100 to 3600000, which is an hour.")
    match: tuple[str, ...] = setting(
        DISTINCT_LIST,
        (),
        doc="Which clients: `name=pattern`, comma-separated, all of which must match. Names are `client_id`, "
        "`client_instance_id`, `client_software_name`, `client_software_version`, `client_source_address` and "
        "`client_source_port`; a pattern is a regular expression for the whole value. Empty means all clients.",
    )
    metrics: tuple[str, ...] = setting(
        DISTINCT_LIST, (), doc="Prefixes of the metrics' names, or `*` for all of them. Empty means none."
    )


def validate_group(broker: BrokerConfig, values: Mapping[str, str]) -> None:
    """Validate the settings of a group. Raises InvalidSetting with Kafka's message."""
    for name in sorted(values):
        if name not in GroupConfig.declared:
            raise InvalidSetting(f"Unknown group config name: {name}")
    for name, text in values.items():
        value = GroupConfig.declared[name].parse(text)
        for bound in _bounds_of(name):
            limit = getattr(broker, bound.replace(".", "_"))
            if ".min." in bound and value < limit:
                raise InvalidSetting(f"{name} must be greater than or equal to {bound}")
            if ".max." in bound and value > limit:
                raise InvalidSetting(f"{name} must be less than or equal to {bound}")


def _bounds_of(name: str) -> list[str]:
    """The broker settings that limit a group's value, such as group.consumer.min.session.timeout.ms."""
    kind, _, rest = name.partition(".")
    candidates = (
        f"group.{kind}.min.{rest}",
        f"group.{kind}.max.{rest}",
        f"group.{kind}.max.{rest.removeprefix('num.')}",
    )
    return [bound for bound in dict.fromkeys(candidates) if bound in BrokerConfig.declared]


def validate_client_metrics(values: Mapping[str, str]) -> None:
    """Validate the settings of a subscription. Raises InvalidSetting, or Refused with Kafka's code, and its message."""
    for name in values:
        if name not in ClientMetricsConfig.declared:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    parsed = {name: ClientMetricsConfig.declared[name].parse(text) for name, text in values.items()}
    for name in ("metrics", "match"):
        if "" in parsed.get(name, ()):
            raise InvalidSetting(f"Configuration '{name}' values must not be empty.")
    interval_ms = parsed.get("interval.ms", ClientMetricsConfig.declared["interval.ms"].default)
    if not 100 <= interval_ms <= 3_600_000:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
    match_patterns(parsed.get("match", ()))


class Pattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def match_patterns(entries: Iterable[str]) -> dict[str, Pattern]:
    """The pattern that a subscription's `match` requires for each attribute of a client. Raises Refused.

    Kafka's patterns are Java's. RE2 lacks some of their syntax, but in return no client can choose an id that takes
    forever to match.
    """
    import re2  # imported here because few brokers and no commands need it

    options = re2.Options()
    options.log_errors = False
    patterns: dict[str, Pattern] = {}
    for entry in entries:
        parts = entry.rstrip("=").split("=")  # splits like Java, without empty parts at the end
        try:
            if len(parts) != 2 or parts[0].strip() not in _MATCH_PARAMETERS:
                raise re2.error("it is not NAME=PATTERN")
            patterns[parts[0].strip()] = re2.compile(parts[1].strip(), options)
        except re2.error:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}") from None
    return patterns


_MATCH_PARAMETERS = {
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
}
