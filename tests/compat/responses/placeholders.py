"""What stands in a scenario for a value that is known only when it is played on a broker."""

import abc
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Context:
    """One scenario being played at one version on one broker."""

    prefix: str
    topic_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    learnt: dict[str, object] = field(default_factory=dict)

    def topic_name(self, short: str) -> str:
        return f"{self.prefix}.{short}"


class Placeholder(abc.ABC):
    @abc.abstractmethod
    def resolve(self, context: Context) -> object: ...


@dataclass(frozen=True)
class Topic(Placeholder):
    """The full name of the scenario's topic."""

    short: str

    def resolve(self, context: Context) -> str:
        return context.topic_name(self.short)


@dataclass(frozen=True)
class Own(Placeholder):
    """A name that no other scenario uses: of a group, a member, a transactional id."""

    short: str

    def resolve(self, context: Context) -> str:
        return context.topic_name(self.short)


@dataclass(frozen=True)
class TopicId(Placeholder):
    """The id that this broker gave to the scenario's topic."""

    short: str

    def resolve(self, context: Context) -> uuid.UUID:
        return context.topic_ids[self.short]


@dataclass(frozen=True)
class Learnt(Placeholder):
    """A value that a step of the scenario learnt from this broker's response, plus a number."""

    name: str
    plus: int = 0

    def resolve(self, context: Context) -> object:
        value = context.learnt[self.name]
        if not self.plus:
            return value
        assert isinstance(value, int)
        return value + self.plus


@dataclass(frozen=True)
class Joined(Placeholder):
    """Bytes after bytes: several batches in one records field."""

    parts: tuple[object, ...]

    def resolve(self, context: Context) -> bytes:
        resolved = [resolve(part, context) for part in self.parts]
        return b"".join(part for part in resolved if isinstance(part, bytes))


def resolve(value: object, context: Context) -> object:
    """The value with every placeholder in it replaced."""
    if isinstance(value, Placeholder):
        return value.resolve(context)
    if isinstance(value, Mapping):
        return {name: resolve(part, context) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(part, context) for part in value]
    return value
