"""One declaration per setting: parsing, checks, DescribeConfigs, dynamic change and the reference pages derive from it.

A table of settings is a class whose body declares them:

    class BrokerConfig(Settings):
        num_partitions: int = setting(INT, 1, at_least(1), doc="How many partitions a topic gets ...")

The setting's name is the attribute's with underscores turned into dots: `num.partitions`. An instance holds the parsed
values, typed and frozen. `BrokerConfig.declared["num.partitions"]` is the declaration.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

from kaspar.base.errors import InvalidSetting
from kaspar.config.checks import Check
from kaspar.config.kinds import PASSWORD, Kind

T = TypeVar("T")
D = TypeVar("D")


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(Enum):
    """How a setting can be changed while the broker runs: Kafka's dynamic update modes (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker setting that is the default of a topic or group setting, and the factor between their units."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting. `not_honoured` is the reason why it has no effect here; empty if it has one. A
    setting that `shows_no_default` has no default in Kafka, so DescribeConfigs does not list ours as a synonym."""

    kind: Kind[Any]
    default: Any
    check: Check[Any] | None
    importance: Importance
    scope: Scope
    doc: str
    synonyms: tuple[Synonym, ...] = ()
    not_honoured: str = ""
    internal: bool = False
    shows_no_default: bool = False
    name: str = ""

    def complete(self, name: str, not_honoured: str) -> None:
        """Set the fields that depend on the class body. Called once, when the class is created."""
        object.__setattr__(self, "name", name)
        if not self.not_honoured:
            object.__setattr__(self, "not_honoured", not_honoured)

    @property
    def sensitive(self) -> bool:
        return self.kind is PASSWORD

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def default_text(self) -> str | None:
        return None if self.default is None or self.shows_no_default else self.kind.format(self.default)

    def parse(self, text: str) -> Any:
        """Parse and check a value. Raises InvalidSetting with a sentence."""
        try:
            value = self.kind.parse(text)
        except ValueError as problem:
            raise self._invalid(text, str(problem)) from None
        if self.check is not None and (wrong := self.check.problem(value)) is not None:
            raise self._invalid(self.check.culprit(value) if self.check.culprit else self.kind.format(value), wrong)
        return value

    def format(self, value: Any) -> str | None:
        return None if value is None else self.kind.format(value)

    def _invalid(self, text: str, problem: str) -> InvalidSetting:
        shown = "[hidden]" if self.sensitive else text
        return InvalidSetting(f"Invalid value {shown} for configuration {self.name}: {problem}")


def setting(
    kind: Kind[T],
    default: D,
    check: Check[T] | None = None,
    *,
    doc: str,
    importance: Importance = Importance.MEDIUM,
    scope: Scope = Scope.READ_ONLY,
    synonyms: tuple[Synonym, ...] = (),
    not_honoured: str = "",
    internal: bool = False,
    shows_no_default: bool = False,
) -> T | D:
    """Declare a setting in the body of a Settings class. To the type checker it is the setting's value."""
    declaration = Setting(
        kind, default, check, importance, scope, doc, synonyms, not_honoured, internal, shows_no_default
    )
    return cast(T | D, declaration)


def topic_default(topic_setting: Setting, importance: Importance = Importance.MEDIUM, *, not_honoured: str = "") -> Any:
    """Declare the broker setting behind a topic setting: same kind, bounds and default, changeable cluster-wide."""
    doc = topic_setting.doc[0].lower() + topic_setting.doc[1:]
    return replace(
        topic_setting,
        name="",
        importance=importance,
        scope=Scope.CLUSTER_WIDE,
        synonyms=(),
        doc=f"For topics that do not set `{topic_setting.name}`: {doc}",
        not_honoured=not_honoured or topic_setting.not_honoured,
    )


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Settings:
    """The base class of every table of settings. The bases of a table are its sections, whose settings it inherits."""

    declared: ClassVar[Mapping[str, Setting]] = {}

    def __init_subclass__(cls, *, not_honoured: str = "", **more: Any) -> None:
        """`not_honoured` is the reason for every setting of a section that gives none of its own."""
        super().__init_subclass__(**more)
        declared: dict[str, Setting] = {}
        for base in cls.__bases__:
            declared.update(getattr(base, "declared", {}))
        for attribute, declaration in vars(cls).items():
            if isinstance(declaration, Setting):
                declaration.complete(attribute.replace("_", "."), not_honoured)
                declared[declaration.name] = declaration
        cls.declared = declared

    def __init__(self, **values: Any) -> None:
        everything = {declaration.attribute: declaration.default for declaration in self.declared.values()}
        if unknown := values.keys() - everything.keys():
            raise TypeError(f"{type(self).__name__} has no setting {sorted(unknown)}")
        everything.update(values)
        self.__dict__.update(everything)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def __repr__(self) -> str:
        changed = (f"{name}={value!r}" for name, value in self._changed())
        return f"{type(self).__name__}({', '.join(changed)})"

    def _changed(self) -> Iterator[tuple[str, object]]:
        for declaration in self.declared.values():
            value = vars(self)[declaration.attribute]
            if value != declaration.default:
                yield declaration.attribute, "[hidden]" if declaration.sensitive else value


def parse_values(declared: Mapping[str, Setting], values: Mapping[str, str]) -> dict[str, Any]:
    """The parsed values by attribute name. Names in `values` that are not declared are ignored."""
    return {declared[name].attribute: declared[name].parse(text) for name, text in values.items() if name in declared}
