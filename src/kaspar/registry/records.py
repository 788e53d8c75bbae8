"""Keys and values of the topic `_schemas`, as Confluent's registry writes them: JSON with fields in the same order.

Records of other writers can be read too: fields may be in any order, missing, null or unknown; unknown ones are
ignored. Karapace's records have the same form.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from kaspar.registry.entities import Metadata, RuleSet, SchemaReference
from kaspar.registry.interfaces import LogRecord
from kaspar.registry.names import TENANT

Mode: TypeAlias = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"]
MODES: Final[tuple[Mode, ...]] = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")

AVRO: Final = "AVRO"
_READWRITE: Final[Mode] = "READWRITE"
_Positive = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
_SchemaId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Key(msgspec.Struct, frozen=True):
    """A key of any type, which determines its fields. `subject` None is the config or mode of the whole registry."""

    keytype: str
    subject: str | None = None
    version: int | None = None
    tenant: str | None = None
    context: str | None = None


class SchemaValue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A version of a subject. Without `schema_type` the format is Avro."""

    subject: str
    version: _Positive
    id: _SchemaId
    md5: str | None = None
    schema_type: str | None = None
    references: tuple[SchemaReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str = msgspec.field(default_factory=str)
    # Encoded even if it is false.
    deleted: bool = msgspec.field(default_factory=bool)

    @property
    def type(self) -> str:
        return self.schema_type or AVRO


class ConfigValue(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    subject: str | None = None
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

    @property
    def has_defaults_or_overrides(self) -> bool:
        return not (
            self.default_metadata is None
            and self.override_metadata is None
            and self.default_rule_set is None
            and self.override_rule_set is None
        )


class ModeValue(msgspec.Struct, frozen=True, omit_defaults=True):
    subject: str | None = None
    mode: Mode = msgspec.field(default_factory=lambda: _READWRITE)


class DeleteSubjectValue(msgspec.Struct, frozen=True):
    """All versions of the subject up to this one are soft-deleted."""

    subject: str
    version: int


class ClearSubjectValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """Removes all soft-deleted versions of the subject, the context or the registry."""

    subject: str | None = None


class ContextValue(msgspec.Struct, frozen=True):
    tenant: str
    context: str


class HighestIdsValue(msgspec.Struct, frozen=True, rename="camel"):
    """By context, the highest id whose schema was deleted permanently."""

    max_ids: dict[str, _SchemaId] = {}


class _SchemaKey(msgspec.Struct, frozen=True):
    keytype: str
    subject: str
    version: int
    magic: int


class _SubjectKey(msgspec.Struct, frozen=True, omit_defaults=True):
    keytype: str
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class _ContextKey(msgspec.Struct, frozen=True):
    keytype: str
    tenant: str
    context: str
    magic: int


_ENCODER: Final = msgspec.json.Encoder()


def _encoded(value: msgspec.Struct) -> bytes:
    return _ENCODER.encode(value)


def _subject_key(keytype: str, subject: str | None) -> bytes:
    return _encoded(_SubjectKey(keytype, subject))


def schema_key(subject: str, version: int) -> bytes:
    return _encoded(_SchemaKey("SCHEMA", subject, version, 1))


def schema_record(value: SchemaValue) -> LogRecord:
    return schema_key(value.subject, value.version), _encoded(value)


def schema_tombstone(subject: str, version: int) -> LogRecord:
    return schema_key(subject, version), None


def config_record(subject: str | None, value: ConfigValue | None) -> LogRecord:
    return _subject_key("CONFIG", subject), None if value is None else _encoded(value)


def mode_record(subject: str | None, mode: Mode | None) -> LogRecord:
    return _subject_key("MODE", subject), None if mode is None else _encoded(ModeValue(subject, mode))


def delete_subject_record(subject: str, version: int) -> LogRecord:
    return _subject_key("DELETE_SUBJECT", subject), _encoded(DeleteSubjectValue(subject, version))


def clear_subject_record(subject: str | None) -> LogRecord:
    return _subject_key("CLEAR_SUBJECT", subject), _encoded(ClearSubjectValue(subject))


def context_record(context: str) -> LogRecord:
    return _encoded(_ContextKey("CONTEXT", TENANT, context, 0)), _encoded(ContextValue(TENANT, context))


def context_tombstone(context: str) -> LogRecord:
    return _encoded(_ContextKey("CONTEXT", TENANT, context, 0)), None


def noop_record() -> LogRecord:
    """A record without effect, which a leader writes to find the end of the topic."""
    return _subject_key("NOOP", None), None


def highest_ids_record(max_ids: dict[str, int]) -> LogRecord:
    """The record of the highest ids, which only this registry reads: Confluent's registry and Karapace ignore every
    record whose key has the type NOOP. The magic byte makes its key different from that of `noop_record`, which would
    be a tombstone for it."""
    return _encoded(_SubjectKey("NOOP", None, 1)), _encoded(HighestIdsValue(max_ids))


decode_key: Final = msgspec.json.Decoder(Key).decode
decode_schema: Final = msgspec.json.Decoder(SchemaValue).decode
decode_config: Final = msgspec.json.Decoder(ConfigValue).decode
decode_mode: Final = msgspec.json.Decoder(ModeValue).decode
decode_delete_subject: Final = msgspec.json.Decoder(DeleteSubjectValue).decode
decode_clear_subject: Final = msgspec.json.Decoder(ClearSubjectValue).decode
decode_context: Final = msgspec.json.Decoder(ContextValue).decode
decode_highest_ids: Final = msgspec.json.Decoder(HighestIdsValue).decode
