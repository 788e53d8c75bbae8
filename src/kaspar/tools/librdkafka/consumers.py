"""Translates the properties of Java's consumers to librdkafka's settings."""

from collections.abc import Mapping
from typing import Final

from kaspar.base.errors import InvalidSetting
from kaspar.tools.librdkafka.translation import Bounded, Translated, Translation
from kaspar.tools.librdkafka.values import Number, choice, invalid, listed

_NUMBERS: Final = {
    "auto.commit.interval.ms": Bounded("auto.commit.interval.ms", Number("INT", 0), 1, 86_400_000),
    "fetch.max.bytes": Bounded("fetch.max.bytes", Number("INT", 0), 0, 2_147_483_135),
    "fetch.max.wait.ms": Bounded("fetch.wait.max.ms", Number("INT", 0), 0, 300_000),
    "fetch.min.bytes": Bounded("fetch.min.bytes", Number("INT", 0), 1, 100_000_000),
    "heartbeat.interval.ms": Bounded("heartbeat.interval.ms", Number("INT"), 1, 3_600_000),
    "max.partition.fetch.bytes": Bounded("max.partition.fetch.bytes", Number("INT", 0), 1, 1_000_000_000),
    "max.poll.interval.ms": Bounded("max.poll.interval.ms", Number("INT", 1), 1, 86_400_000),
    "request.timeout.ms": Bounded("socket.timeout.ms", Number("INT", 0), 1, 300_000),
    "session.timeout.ms": Bounded("session.timeout.ms", Number("INT"), 1, 3_600_000),
}

_TEXTS: Final = ("client.rack", "group.id", "group.instance.id", "group.remote.assignor")
_BOOLEANS: Final = ("allow.auto.create.topics", "check.crcs", "enable.auto.commit")
_ISOLATION_LEVELS: Final = ("read_committed", "read_uncommitted")
_ASSIGNORS: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
_COOPERATIVE: Final = "cooperative-sticky"
_ONLY_WITH_CLASSIC: Final = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")


_DEFAULT_QUEUED_KIB: Final = 65_536


def consumer_settings(properties: Mapping[str, str]) -> Translated:
    """Translate the properties. Raises InvalidSetting."""
    translation = Translation(properties, _NUMBERS, _TEXTS, _BOOLEANS)
    translation.of("isolation.level", lambda text: choice("isolation.level", text, _ISOLATION_LEVELS))
    translation.of("auto.offset.reset", _reset_policy)
    _set_group_protocol(translation)
    _set_fetch_sizes(translation)
    _set_poll_interval(translation)
    defaults = {
        "isolation.level": "read_uncommitted",
        "allow.auto.create.topics": True,
        "check.crcs": True,
        # After its queue was full, librdkafka by default waits a second before the next fetch, during which a fast
        # reader would be idle.
        "fetch.queue.backoff.ms": 10,
    }
    return translation.finish(defaults)


def _reset_policy(text: str) -> str:
    value = text.strip().lower()
    if value.startswith("by_duration:"):
        raise invalid("auto.offset.reset", text, "librdkafka has earliest, latest and none")
    if value not in ("latest", "earliest", "none"):
        raise invalid(
            "auto.offset.reset",
            text,
            "the value must be one of 'latest', 'earliest', 'none' or 'by_duration:PnDTnHnMn.nS'",
        )
    return "error" if value == "none" else value


def _set_group_protocol(translation: Translation) -> None:
    protocol = "CLASSIC"
    if (text := translation.take("group.protocol")) is not None:
        protocol = choice("group.protocol", text, ("CONSUMER", "CLASSIC"), any_case=True)
        translation.settings["group.protocol"] = protocol.lower()
    assignors = listed(translation.properties, "partition.assignment.strategy")
    translation.take("partition.assignment.strategy")
    if protocol == "CONSUMER":
        for name in _ONLY_WITH_CLASSIC:
            if name in translation.properties:
                raise InvalidSetting(f"{name} cannot be set when group.protocol=CONSUMER")
        return
    if "group.remote.assignor" in translation.settings:
        raise InvalidSetting("group.remote.assignor cannot be set when group.protocol=CLASSIC")
    translation.settings["partition.assignment.strategy"] = ",".join(_strategies(translation, assignors) or ("range",))


def _strategies(translation: Translation, assignors: list[str]) -> list[str]:
    name = "partition.assignment.strategy"
    by_short_name = {each: each for each in _ASSIGNORS.values()}
    known = {**_ASSIGNORS, **by_short_name}
    if unknown := [each for each in assignors if each not in known]:
        raise invalid(name, unknown[0], f"librdkafka has {', '.join(_ASSIGNORS)}")
    strategies = [known[each] for each in assignors]
    if _COOPERATIVE in strategies and len(set(strategies)) > 1:
        translation.warnings.append(f"{name}: librdkafka cannot offer {_COOPERATIVE} beside others, and leaves it out.")
        strategies = [each for each in strategies if each != _COOPERATIVE]
    return strategies


def _set_fetch_sizes(translation: Translation) -> None:
    """If fetch.max.bytes is set, librdkafka requires message.max.bytes <= fetch.max.bytes <= the size of its queue."""
    if "fetch.max.bytes" not in translation.settings:
        return
    size = translation.number("fetch.max.bytes", 0)
    translation.settings["fetch.max.bytes"] = max(size, 1000)
    translation.settings["message.max.bytes"] = min(max(size, 1000), 1_000_000)
    queued = min(max(size // 1024 + 1, _DEFAULT_QUEUED_KIB), 2_097_151)
    translation.settings["queued.max.messages.kbytes"] = queued


def _set_poll_interval(translation: Translation) -> None:
    """librdkafka requires session.timeout.ms <= max.poll.interval.ms, and socket.timeout.ms >= fetch.wait.max.ms +
    1000.
    """
    session = translation.number("session.timeout.ms", 45_000)
    if translation.number("max.poll.interval.ms", 300_000) < session:
        translation.settings["max.poll.interval.ms"] = session
    wait = translation.number("fetch.wait.max.ms", 500)
    if "socket.timeout.ms" in translation.settings:
        timeout = max(translation.number("socket.timeout.ms", 0), wait + 1000)
        translation.settings["socket.timeout.ms"] = min(timeout, 300_000)
