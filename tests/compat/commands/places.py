"""Runs a scenario at several places and compares what the commands printed there.

A place is a broker and whose commands are run on it. Kafka's commands on our broker say what is expected; ours must
print the same on our broker and on Apache Kafka's:

    def scenario(place: Place) -> None:
        topic = place.name_of("orders")
        place.run(TOPICS, *place.servers, "--create", "--topic", topic)

    same_at_all(places, scenario)

Names that a scenario asks for differ from place to place, since places share brokers; they are masked in the output.
What else differs from run to run (ids, times, ports) is masked by patterns, those of the scenario included.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.compat.tools.comparing import Command, run_ours, sentences
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.process import BrokerProcess

_ALWAYS_MASKED: Final = (
    (re.compile(r"(localhost|127\.0\.0\.1):\d+"), "HOST:PORT"),
    (re.compile(r"\b(TopicId|topicId): ?\S{22}\b"), r"\1: ID"),
)


class Place:
    """A broker, and whose commands are run on it: Kafka's if there are `kafka_tools`, otherwise ours."""

    _numbers = itertools.count(1)

    def __init__(self, name: str, broker: BrokerProcess, folder: Path, kafka_tools: KafkaTools | None) -> None:
        self.name = name
        self.broker = broker
        self.folder = folder
        self.seen: list[Any] = []
        self._kafka_tools = kafka_tools
        self._names: dict[str, str] = {}
        self._masks: list[tuple[re.Pattern[str], str]] = list(_ALWAYS_MASKED)
        self._suffix = f"{next(Place._numbers):04}"

    def __repr__(self) -> str:
        return self.name

    @property
    def servers(self) -> tuple[str, str]:
        return "--bootstrap-server", self.broker.bootstrap

    def name_of(self, what: str) -> str:
        """The name that this place has for a topic, group or user. All have the same length."""
        return self._names.setdefault(what, f"{what}-{self._suffix}")

    @property
    def own_names(self) -> set[str]:
        """Of topics, groups and users that only this place has."""
        return {*self._names.values()}

    def mask(self, pattern: str, instead: str) -> None:
        """For what differs from run to run, in all further output of this place."""
        self._masks.append((re.compile(pattern, re.MULTILINE), instead))

    def file(self, text: str, name: str = "input") -> Path:
        path = self.folder / f"{name}-{self._suffix}"
        path.write_text(text)
        return path

    def run(self, command: Command, *arguments: str | Path, in_order: bool = True, standard_input: bytes = b"") -> Done:
        """Run the command and compare what it prints; without `in_order` its lines in any order."""
        done = self.run_unseen(command, *arguments, standard_input=standard_input)
        shown = Done(done.code, sentences(done.output), sentences(done.errors))
        if not in_order:
            shown = Done(done.code, *("\n".join(sorted(text.splitlines())) for text in shown[1:]))
        self.see(shown)
        return done

    def run_unseen(self, command: Command, *arguments: str | Path, standard_input: bytes = b"") -> Done:
        """For what a scenario needs but does not compare."""
        if self._kafka_tools is not None:
            return self._kafka_tools.run(command.kafka_class, *arguments, standard_input=standard_input)
        done = run_ours(command, *arguments, standard_input=standard_input)
        assert "Traceback" not in done.errors
        return done

    def see(self, value: Any) -> None:
        """Must be the same at all places."""
        self.seen.append(self._masked(value))

    def _masked(self, value: Any) -> Any:
        match value:
            case str():
                for what, name in self._names.items():
                    value = value.replace(name, f"<{what}>")
                value = value.replace(f"-{self._suffix}", "").replace(str(self.folder), "")
                for pattern, instead in self._masks:
                    value = pattern.sub(instead, value)
                return value
            case Done():
                return Done(value.code, self._masked(value.output), self._masked(value.errors))
            case dict():
                return {self._masked(key): self._masked(each) for key, each in value.items()}
            case list():
                return [self._masked(each) for each in value]
        return value


Places = tuple[Place, ...]


def same_at_all(places: Sequence[Place], scenario: Callable[[Place], object]) -> None:
    for place in places:
        scenario(place)
    expected, *others = places
    for other in others:
        for number, (wanted, found) in enumerate(itertools.zip_longest(expected.seen, other.seen)):
            assert found == wanted, (
                f"number {number} differs:\n--- {expected}:\n{_readable(wanted)}\n--- {other}:\n{_readable(found)}"
            )


def _readable(seen: object) -> str:
    if isinstance(seen, Done):
        return f"exit code {seen.code}\n{seen.output}\n[errors]\n{seen.errors}"
    return str(seen)
