"""The common part of producers and consumers in the translation of Java's client properties to librdkafka's
settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.tools.librdkafka.values import Number, boolean, choice

Settings = dict[str, object]

NON_NEGATIVE: Final = Number("LONG", 0)


@dataclass(frozen=True, slots=True)
class Translated:
    """`settings` may contain secrets, so the representation hides the values. Each warning is a sentence."""

    settings: Settings
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Translated({sorted(self.settings)}, warnings={self.warnings})"


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number with narrower bounds in librdkafka than in Java. Values beyond the bounds are replaced by the bound."""

    target: str
    number: Number
    lowest: int = 0
    highest: int = (1 << 31) - 1

    def translate(self, name: str, text: str) -> int:
        return min(max(self.number.parse(name, text), self.lowest), self.highest)


_NUMBERS: Final = {
    "connections.max.idle.ms": Bounded("connections.max.idle.ms", Number("LONG")),
    "metadata.max.age.ms": Bounded("topic.metadata.refresh.interval.ms", NON_NEGATIVE, 10, 3_600_000),
    "metadata.recovery.rebootstrap.trigger.ms": Bounded("metadata.recovery.rebootstrap.trigger.ms", NON_NEGATIVE),
    "receive.buffer.bytes": Bounded("socket.receive.buffer.bytes", Number("INT", -1), 0, 100_000_000),
    "reconnect.backoff.ms": Bounded("reconnect.backoff.ms", NON_NEGATIVE, 0, 3_600_000),
    "reconnect.backoff.max.ms": Bounded("reconnect.backoff.max.ms", NON_NEGATIVE, 0, 3_600_000),
    "retry.backoff.ms": Bounded("retry.backoff.ms", NON_NEGATIVE, 1, 300_000),
    "retry.backoff.max.ms": Bounded("retry.backoff.max.ms", NON_NEGATIVE, 1, 300_000),
    "send.buffer.bytes": Bounded("socket.send.buffer.bytes", Number("INT", -1), 0, 100_000_000),
    "socket.connection.setup.timeout.ms": Bounded("socket.connection.setup.timeout.ms", Number("LONG"), 1000),
}
_TEXTS: Final = ("bootstrap.servers", "client.id", "client.dns.lookup")
_BOOLEANS: Final = ("enable.metrics.push",)

CLASSES: Final = "it names Java classes, but this client is not written in Java"
_WITHOUT_EFFECT: Final = {
    "interceptor.classes": CLASSES,
    "partitioner.availability.timeout.ms": "librdkafka has no such rule",
}
_UNNOTICED: Final = frozenset(
    (
        "auto.include.jmx.reporter",
        "config.providers",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "socket.connection.setup.timeout.max.ms",
        "value.deserializer",
        "value.serializer",
    )
)
"""Properties that the caller implements, and properties whose absence has no noticeable effect."""
_UNNOTICED_PREFIXES: Final = ("config.providers.", "security.", "ssl.", "sasl.")


class Translation:
    """A translation in progress."""

    def __init__(
        self,
        properties: Mapping[str, str],
        numbers: dict[str, Bounded],
        texts: tuple[str, ...] = (),
        booleans: tuple[str, ...] = (),
    ) -> None:
        self.properties = properties
        self.settings: Settings = {}
        self.warnings: list[str] = []
        self._left = set(properties)
        for name, number in (_NUMBERS | numbers).items():
            if (text := self.take(name)) is not None:
                self.settings[number.target] = number.translate(name, text)
        for name in (*_TEXTS, *texts):
            if (text := self.take(name)) is not None:
                self.settings[name] = text
        for name in (*_BOOLEANS, *booleans):
            if (text := self.take(name)) is not None:
                self.settings[name] = boolean(name, text)
        self.of("metadata.recovery.strategy", _recovery_strategy)
        self._keep_backoffs_in_order()

    def of(self, name: str, translate: Callable[[str], object]) -> None:
        """Translate this property if it is set. It has the same name in librdkafka."""
        if (text := self.take(name)) is not None:
            self.settings[name] = translate(text)

    def take(self, name: str) -> str | None:
        self._left.discard(name)
        return self.properties.get(name)

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.take(name)
        return default if text is None else boolean(name, text)

    def number(self, name: str, default: int) -> int:
        """The value of an already translated setting."""
        value = self.settings.get(name, default)
        assert isinstance(value, int)
        return value

    def warn(self, name: str, reason: str) -> None:
        self.warnings.append(f"{name} has no effect: {reason}.")

    def finish(self, defaults: Mapping[str, object] | None = None) -> Translated:
        for name in sorted(self._left - _UNNOTICED):
            if not name.startswith(_UNNOTICED_PREFIXES):
                self.warn(name, _WITHOUT_EFFECT.get(name, "it is not a setting of this client"))
        if self.properties.get("security.protocol", "PLAINTEXT").strip().upper() != "PLAINTEXT":
            from kaspar.tools.librdkafka.security import security_settings  # importing key stores is slow

            settings, warnings = security_settings(self.properties)
            self.settings |= settings
            self.warnings += warnings
        return Translated({**(defaults or {}), **self.settings}, tuple(self.warnings))

    def _keep_backoffs_in_order(self) -> None:
        """librdkafka rejects a maximum below the first backoff; Java uses the maximum for both in this case."""
        for first, last, default, default_max in (
            ("reconnect.backoff.ms", "reconnect.backoff.max.ms", 100, 10_000),
            ("retry.backoff.ms", "retry.backoff.max.ms", 100, 1000),
        ):
            if (maximum := self.number(last, default_max)) < self.number(first, default):
                self.settings[first] = maximum


def _recovery_strategy(text: str) -> str:
    return choice("metadata.recovery.strategy", text, ("REBOOTSTRAP", "NONE"), any_case=True).lower()
