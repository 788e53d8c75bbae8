"""Request and response bodies. Empty fields of responses are omitted, as in Confluent's."""

from typing import Annotated, Final, Self

import msgspec
from msgspec import UNSET, UnsetType

from kaspar.registry.decisions.registration import NO_ID, NO_VERSION, NewSchema
from kaspar.registry.entities import Metadata, RuleSet, SchemaReference, SchemaTags
from kaspar.registry.names import within
from kaspar.registry.records import AVRO, ConfigValue
from kaspar.registry.state import StoredVersion

_QUALIFIED: Final = "qualified"
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class RegisterRequest(msgspec.Struct, frozen=True, rename="camel"):
    version: _Int32 | None = None
    id: _Int32 | None = None
    schema_type: str | None = None
    references: tuple[SchemaReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str | None = None
    schema_tags_to_add: tuple[SchemaTags, ...] | None = None
    schema_tags_to_remove: tuple[SchemaTags, ...] | None = None

    def for_subject(self, subject: str) -> NewSchema:
        return NewSchema(
            subject=subject,
            text=self.schema or "",
            type=self.schema_type or AVRO,
            references=self.references or (),
            metadata=self.metadata,
            rule_set=self.rule_set,
            version=NO_VERSION if self.version is None else self.version,
            id=NO_ID if self.id is None or self.id < 0 else self.id,
        )


class TagsRequest(msgspec.Struct, frozen=True, rename="camel"):
    """`rulesToMerge` and `rulesToRemove` change the rules of the previous version; `ruleSet` replaces them."""

    new_version: _Int32 | None = None
    tags_to_add: tuple[SchemaTags, ...] | None = None
    tags_to_remove: tuple[SchemaTags, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: tuple[str, ...] | None = None


class ConfigRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A missing field is unchanged; null resets it."""

    alias: str | UnsetType | None = UNSET
    normalize: bool | UnsetType | None = UNSET
    validate_fields: bool | UnsetType | None = UNSET
    validate_names: bool | UnsetType | None = UNSET
    compatibility: str | UnsetType | None = UNSET
    compatibility_policy: str | UnsetType | None = UNSET
    compatibility_group: str | UnsetType | None = UNSET
    default_metadata: Metadata | UnsetType | None = UNSET
    override_metadata: Metadata | UnsetType | None = UNSET
    default_rule_set: RuleSet | UnsetType | None = UNSET
    override_rule_set: RuleSet | UnsetType | None = UNSET


class ModeRequest(msgspec.Struct, frozen=True):
    mode: str | None = None


class RegisterResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    id: int
    version: int
    guid: str
    schema_type: str | None = None
    references: tuple[SchemaReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = msgspec.field(default_factory=str)

    @classmethod
    def of(cls, stored: StoredVersion, new: NewSchema) -> "RegisterResponse":
        """The text is that of the request: clients cache the response under the text that they sent, and a client that
        sent a serialized descriptor does not expect its source."""
        value = stored.value
        return cls(
            stored.id,
            stored.version,
            stored.guid,
            _type(stored),
            stored.references or None,
            value.metadata,
            value.rule_set,
            value.schema if new.is_empty else new.text,
        )


class SchemaResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A version of a subject. Without `schemaType` the format is Avro."""

    subject: str
    version: int
    id: int
    guid: str
    schema_type: str | None = None
    references: tuple[SchemaReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = msgspec.field(default_factory=str)
    schema_tags: list[SchemaTags] | None = None
    """Present only if the request has `findTags`."""
    ts: int = 0
    """When the version was written, in milliseconds."""
    deleted: bool = False
    aliases: list[str] | None = None

    @classmethod
    def of(
        cls,
        stored: StoredVersion,
        text: str,
        aliases: list[str] | None = None,
        *,
        tags: list[SchemaTags] | None = None,
        reference_format: str = "",
    ) -> "SchemaResponse":
        value = stored.value
        return cls(
            stored.subject,
            stored.version,
            stored.id,
            stored.guid,
            _type(stored),
            _references(stored, reference_format),
            value.metadata,
            value.rule_set,
            text,
            tags,
            stored.timestamp_ms,
            stored.deleted,
            aliases,
        )


class SchemaByIdResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`subject` and `version` are present only if the request named a subject."""

    subject: str | None = None
    version: int | None = None
    guid: str | None = None
    schema_type: str | None = None
    schema: str = msgspec.field(default_factory=str)
    references: tuple[SchemaReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema_tags: list[SchemaTags] | None = None
    """Present only if the request has `findTags`."""
    max_id: int | None = None

    @classmethod
    def of(
        cls,
        stored: StoredVersion,
        text: str,
        *,
        with_subject: bool = False,
        tags: list[SchemaTags] | None = None,
        max_id: int | None = None,
        reference_format: str = "",
    ) -> "SchemaByIdResponse":
        value = stored.value
        return cls(
            stored.subject if with_subject else None,
            stored.version if with_subject else None,
            stored.guid,
            _type(stored),
            text,
            _references(stored, reference_format),
            value.metadata,
            value.rule_set,
            tags,
            max_id,
        )


class SubjectVersion(msgspec.Struct, frozen=True):
    subject: str
    version: int


class ContextId(msgspec.Struct, frozen=True):
    context: str
    id: int


class CompatibilityResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """`messages` is present only if the request is `verbose`."""

    is_compatible: bool
    messages: list[str] | None = None


class ConfigResponse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    alias: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_names: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None

    @classmethod
    def of(cls, config: ConfigValue) -> Self:
        return cls(**{name: getattr(config, name) for name in cls.__struct_fields__})


class ConfigUpdateResponse(ConfigResponse, frozen=True, omit_defaults=True):
    """The config after the change. The compatibility level has another field name than in ConfigResponse."""

    compatibility_level: str | None = msgspec.field(default=None, name="compatibility")


class ModeResponse(msgspec.Struct, frozen=True):
    mode: str


class ClusterScope(msgspec.Struct, frozen=True):
    path: list[str]
    clusters: dict[str, str]


class ClusterIdResponse(msgspec.Struct, frozen=True):
    id: str
    scope: ClusterScope


class VersionResponse(msgspec.Struct, frozen=True, rename="camel"):
    version: str
    commit_id: str


class ErrorResponse(msgspec.Struct, frozen=True):
    error_code: int
    message: str


def _references(stored: StoredVersion, reference_format: str) -> tuple[SchemaReference, ...] | None:
    if reference_format.lower() != _QUALIFIED:
        return stored.references or None
    return tuple(
        SchemaReference(each.name, within(stored.subject, each.subject), each.version) for each in stored.references
    )


def _type(stored: StoredVersion) -> str | None:
    return None if stored.value.type == AVRO else stored.value.type
