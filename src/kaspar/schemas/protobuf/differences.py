"""The kinds of difference between two Protobuf schemas: Confluent's names and messages, and which of them are
compatible (io.confluent.kafka.schemaregistry.protobuf.diff: Difference, SchemaDiff)."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kaspar.schemas.levels import escaped


class Change(Enum):
    """Confluent's names. They describe the reader's schema relative to the writer's."""

    PACKAGE_CHANGED = auto()
    MESSAGE_ADDED = auto()
    MESSAGE_REMOVED = auto()
    MESSAGE_MOVED = auto()
    ENUM_ADDED = auto()
    ENUM_REMOVED = auto()
    ENUM_CONST_ADDED = auto()
    ENUM_CONST_CHANGED = auto()
    ENUM_CONST_REMOVED = auto()
    FIELD_ADDED = auto()
    FIELD_REMOVED = auto()
    FIELD_NAME_CHANGED = auto()
    FIELD_KIND_CHANGED = auto()
    FIELD_SCALAR_KIND_CHANGED = auto()
    FIELD_NAMED_TYPE_CHANGED = auto()
    FIELD_NUMERIC_LABEL_CHANGED = auto()
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = auto()
    REQUIRED_FIELD_ADDED = auto()
    REQUIRED_FIELD_REMOVED = auto()
    ONEOF_ADDED = auto()
    ONEOF_REMOVED = auto()
    ONEOF_FIELD_ADDED = auto()
    ONEOF_FIELD_REMOVED = auto()
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = auto()
    FIELD_MOVED_TO_EXISTING_ONEOF = auto()

    @property
    def is_compatible(self) -> bool:
        return self not in _MESSAGES


@dataclass(frozen=True, slots=True)
class Difference:
    change: Change
    path: tuple[str, ...]

    @property
    def location(self) -> str:
        """The names of messages and oneofs, and numbers of fields: `#/Order/Line/2`."""
        return f"#/{'/'.join(self.path)}"

    def __str__(self) -> str:
        """Confluent's message, with `%s` for the side of the reader and then that of the writer. Only for incompatible
        changes; the others are not reported."""
        description = _MESSAGES[self.change].replace("{path}", escaped(self.location))
        return f'{{errorType:"{self.change.name}", description:"{description}"}}'


# Exactly the changes with a message are incompatible. Clients of Confluent's registry see these texts verbatim.
_MESSAGES: Final = {
    Change.MESSAGE_REMOVED: "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    Change.FIELD_KIND_CHANGED: "The type of a field at path '{path}' in the %s schema does not match the %s schema",
    Change.FIELD_SCALAR_KIND_CHANGED: (
        "The kind of a SCALAR field at path '{path}' in the %s schema does not match its kind in the %s schema"
    ),
    Change.FIELD_NAMED_TYPE_CHANGED: (
        "The type of a MESSAGE field at path '{path}' in the %s schema does not match its type in the %s schema"
    ),
    Change.FIELD_NUMERIC_LABEL_CHANGED: (
        "The label for a NUMERIC field at path '{path}' in the %s schema does not match its label in the %s schema"
    ),
    Change.REQUIRED_FIELD_ADDED: "A required field  at path '{path}' in the %s schema is missing in the %s schema",
    Change.REQUIRED_FIELD_REMOVED: "The %s schema is missing a required field at path: '{path}' in the %s schema",
    Change.ONEOF_FIELD_REMOVED: "The %s schema is missing a oneof field at path '{path}' in the %s schema",
    Change.MULTIPLE_FIELDS_MOVED_TO_ONEOF: (
        "Multiple fields in the oneof at path '{path}' in the %s schema are outside a oneof in the %s schema"
    ),
    Change.FIELD_MOVED_TO_EXISTING_ONEOF: (
        "A field in the oneof at path '{path}' in the %s schema is outside an existing oneof in the %s schema"
    ),
}
