"""Checks and changes of a registry's schemas. All calls block and raise RegistryError."""

import re
from typing import Any, Final
from urllib.parse import quote

import msgspec

from kaspar.console.problems import Unacceptable
from kaspar.console.registries import CallersRegistry
from kaspar.console.schemas.browsing import subject_path
from kaspar.serialization.errors import RegistryError

LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_NOT_FOUND: Final = 404
_INVALID: Final = 422
_DESCRIPTION: Final = re.compile(r"description:'(?P<text>.*?)', ?additionalInfo:", re.DOTALL)


class SchemaReference(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str
    subject: str
    version: int


class NewSchema(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request with a schema to check or to register."""

    subject: str
    schema: str
    type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()

    def body(self) -> dict[str, Any]:
        """The JSON for the registry. Raises Unacceptable."""
        if not self.subject:
            raise Unacceptable("The subject is missing.")
        if self.type not in TYPES:
            raise Unacceptable(f"The type of a schema must be one of {', '.join(TYPES)}, not {self.type!r}.")
        body: dict[str, Any] = {"schema": self.schema}
        if self.type != "AVRO":  # registries before Confluent 5.5 do not know the field
            body["schemaType"] = self.type
        if self.references:
            body["references"] = msgspec.to_builtins(self.references)
        return body


class Verdict(msgspec.Struct, frozen=True):
    is_valid: bool
    is_compatible: bool
    is_new_subject: bool = False
    reasons: tuple[str, ...] = ()
    """The sentences among the registry's messages."""
    messages: tuple[str, ...] = ()
    """All messages of the registry."""


def check(registry: CallersRegistry, new: NewSchema) -> Verdict:
    """Whether the registry would accept the schema: it is valid, and compatible with the versions that matter."""
    path = f"/compatibility{subject_path(new.subject)}/versions"
    try:
        found = registry.request("POST", path, {"verbose": "true"}, new.body())
    except RegistryError as error:
        if error.status == _NOT_FOUND:
            return Verdict(True, True, is_new_subject=True)
        if error.status == _INVALID:
            return Verdict(False, False, reasons=(str(error),))
        raise
    messages = tuple(map(str, found.get("messages") or ()))
    reasons = tuple(match["text"] for each in messages if (match := _DESCRIPTION.search(each)))
    return Verdict(True, bool(found.get("is_compatible")), reasons=reasons or messages, messages=messages)


def register(registry: CallersRegistry, new: NewSchema) -> dict[str, Any]:
    """Register a schema. Returns its id and version."""
    body = new.body()
    registered = registry.request("POST", f"{subject_path(new.subject)}/versions", {}, body)
    found = registry.request("POST", subject_path(new.subject), {}, body)
    return {"id": registered.get("id"), "version": found.get("version")}


def delete_version(registry: CallersRegistry, subject: str, version: int, *, permanent: bool) -> None:
    registry.request("DELETE", f"{subject_path(subject)}/versions/{version}", _flag(permanent))


def delete_subject(registry: CallersRegistry, subject: str, *, permanent: bool) -> None:
    registry.request("DELETE", subject_path(subject), _flag(permanent))


def set_compatibility(registry: CallersRegistry, subject: str | None, level: str | None) -> None:
    """Set the level of a subject, or of the registry. Without a level, the subject gets that of the registry again."""
    _set(registry, "config", "compatibility", subject, level, LEVELS)


def set_mode(registry: CallersRegistry, subject: str | None, mode: str | None) -> None:
    _set(registry, "mode", "mode", subject, mode, MODES)


def _set(
    registry: CallersRegistry, resource: str, name: str, subject: str | None, value: str | None, known: tuple[str, ...]
) -> None:
    path = f"/{resource}" if subject is None else f"/{resource}/{quote(subject, safe='')}"
    if value is None:
        if subject is None:
            raise Unacceptable("The registry's own level cannot be removed.")
        registry.request("DELETE", path)
    elif value not in known:
        raise Unacceptable(f"It must be one of {', '.join(known)}, not {value!r}.")
    else:
        registry.request("PUT", path, {}, {name: value})


def _flag(permanent: bool) -> dict[str, str]:
    return {"permanent": "true"} if permanent else {}
