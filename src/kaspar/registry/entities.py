"""The parts of a schema besides its text: references, metadata and rules. Their JSON is Confluent's: fields in the same
order, without empty ones.

Metadata and rules are part of a schema's identity. The registry merges them with the defaults and overrides of the
config, and returns them; it runs no rule.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from kaspar.base.errors import KasparError
from kaspar.schemas import EntityType

CONFLUENT_VERSION: Final = "confluent:version"
"""The metadata property that holds the version number, if the client requests it by setting the property."""

RuleKind: TypeAlias = Literal["TRANSFORM", "CONDITION"]
RuleMode: TypeAlias = Literal["UPGRADE", "DOWNGRADE", "UPDOWN", "READ", "WRITE", "WRITEREAD"]

_MIGRATION_MODES: Final = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class InvalidRules(KasparError):
    """An invalid set of rules, which every registry rejects."""


class SchemaReference(msgspec.Struct, frozen=True, gc=False):
    """A schema that another schema uses. `name` is its name in the other schema's text."""

    name: str
    subject: str
    version: _INT32


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    tags: dict[str, tuple[str, ...]] | None = None
    properties: dict[str, str] | None = None
    sensitive: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # Confluent keeps sorted maps and sets, so that the order in a request does not change the schema's identity.
        tags = {path: _sorted_set(names) for path, names in sorted((self.tags or {}).items())}
        msgspec.structs.force_setattr(self, "tags", tags or None)
        msgspec.structs.force_setattr(self, "properties", dict(sorted((self.properties or {}).items())) or None)
        msgspec.structs.force_setattr(self, "sensitive", _sorted_set(self.sensitive or ()) or None)

    @property
    def confluent_version(self) -> str | None:
        return (self.properties or {}).get(CONFLUENT_VERSION)


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    # Fields with a default factory are encoded even with their default value.
    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = msgspec.field(default_factory=lambda: "TRANSFORM")
    mode: RuleMode | None = msgspec.field(default_factory=lambda: "WRITEREAD")
    type: str | None = None
    tags: tuple[str, ...] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = msgspec.field(default_factory=bool)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "kind", self.kind or "TRANSFORM")
        msgspec.structs.force_setattr(self, "mode", self.mode or "WRITEREAD")
        msgspec.structs.force_setattr(self, "tags", _sorted_set(self.tags or ()) or None)
        msgspec.structs.force_setattr(self, "params", dict(sorted((self.params or {}).items())) or None)


class RuleSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    migration_rules: tuple[Rule, ...] | None = None
    domain_rules: tuple[Rule, ...] | None = None
    encoding_rules: tuple[Rule, ...] | None = None
    enable_at: str | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "migration_rules", self.migration_rules or None)
        msgspec.structs.force_setattr(self, "domain_rules", self.domain_rules or None)
        msgspec.structs.force_setattr(self, "encoding_rules", self.encoding_rules or None)

    def rules(self) -> Iterable[Rule]:
        for rules in (self.migration_rules, self.domain_rules, self.encoding_rules):
            yield from rules or ()

    def check(self) -> None:
        """Raises InvalidRules."""
        _check_rules(
            self.migration_rules or (), "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN", migration=True
        )
        _check_rules(self.domain_rules or (), "Domain rules can only be WRITE, READ, WRITEREAD", migration=False)
        _check_rules(self.encoding_rules or (), "Encoding rules can only be WRITE, READ, WRITEREAD", migration=False)


class SchemaEntity(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a schema that can have tags."""

    entity_path: str
    entity_type: EntityType


class SchemaTags(msgspec.Struct, frozen=True, rename="camel"):
    """Tags of one part of the schema's text. The metadata's tags are not included."""

    schema_entity: SchemaEntity
    tags: tuple[str, ...]


def without_rules(rule_set: RuleSet | None, names: Collection[str]) -> RuleSet | None:
    if rule_set is None:
        return None

    def kept(rules: tuple[Rule, ...] | None) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules or () if rule.name not in names)

    return RuleSet(
        kept(rule_set.migration_rules), kept(rule_set.domain_rules), kept(rule_set.encoding_rules), rule_set.enable_at
    )


def merged_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """Merge two maps of metadata; `new` takes precedence."""
    if old is None or new is None:
        return new if old is None else old
    return Metadata(
        {**(old.tags or {}), **(new.tags or {})},
        {**(old.properties or {}), **(new.properties or {})},
        (*(old.sensitive or ()), *(new.sensitive or ())),
    )


def merged_rule_sets(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """Merge two sets of rules; a rule of `new` replaces the rule with the same name."""
    if old is None or new is None:
        return new if old is None else old
    return RuleSet(
        _merged_rules(old.migration_rules or (), new.migration_rules or ()),
        _merged_rules(old.domain_rules or (), new.domain_rules or ()),
        _merged_rules(old.encoding_rules or (), new.encoding_rules or ()),
        old.enable_at if new.enable_at is None else new.enable_at,
    )


def with_confluent_version(metadata: Metadata | None, version: int) -> Metadata:
    merged = merged_metadata(metadata, Metadata(properties={CONFLUENT_VERSION: str(version)}))
    assert merged is not None
    return merged


def without_confluent_version(metadata: Metadata | None) -> Metadata | None:
    """The metadata without `confluent:version`; None if nothing else is left."""
    if metadata is None or metadata.confluent_version is None:
        return metadata
    properties: Mapping[str, str] = metadata.properties or {}
    rest = {name: value for name, value in properties.items() if name != CONFLUENT_VERSION}
    kept = Metadata(metadata.tags, rest, metadata.sensitive)
    return None if kept == Metadata() else kept


def _merged_rules(old: tuple[Rule, ...], new: tuple[Rule, ...]) -> tuple[Rule, ...]:
    names = {rule.name for rule in new}
    return (*(rule for rule in old if rule.name not in names), *new)


def _check_rules(rules: tuple[Rule, ...], wrong_mode: str, *, migration: bool) -> None:
    names: set[str | None] = set()
    for rule in rules:
        if rule.name in names:
            raise InvalidRules(f"Found rule with duplicate name '{rule.name}'")
        names.add(rule.name)
        _check_rule(rule)
        if (rule.mode in _MIGRATION_MODES) != migration:
            raise InvalidRules(wrong_mode)


def _check_rule(rule: Rule) -> None:
    name = rule.name
    if name is None:
        raise InvalidRules("Missing rule name")
    if not name:
        raise InvalidRules("Empty rule name")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidRules(f"Illegal initial character in rule name: {name}")
    if not all(character.isalnum() or character in "_-" for character in name):
        raise InvalidRules(f"Illegal character in rule name: {name}")
    if rule.type is None:
        raise InvalidRules("Missing rule type")


def _sorted_set(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
