"""The contents of a registry: subjects, versions, references, compatibility levels and modes. All calls block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from kaspar.console.problems import NotThere
from kaspar.console.registries import CallersRegistry
from kaspar.console.schemas.texts import DiffLine, diff, formatted
from kaspar.serialization.errors import RegistryError, RegistryUnavailable

_NOT_FOUND: Final = 404
_MOST_REFERRING: Final = 50


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A row of the list. A value that could not be read is None."""

    subject: str
    is_deleted: bool = False
    type: str | None = None
    latest_version: int | None = None
    latest_id: int | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """A compatibility level or a mode. `is_own`: whether it is the subject's own, and not the registry's."""

    value: str | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class VersionRow:
    version: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class SubjectView:
    subject: str
    versions: tuple[VersionRow, ...]
    compatibility: Level
    mode: Level


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    subject: str
    version: int
    id: int | None
    type: str
    text: str
    """The schema as it is registered."""
    formatted: str
    references: Sequence[Mapping[str, Any]] = ()
    referenced_by: Sequence[Mapping[str, Any]] = ()
    metadata: Any = None
    rule_set: Any = None


def subject_path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def subject_names(registry: CallersRegistry, *, with_deleted: bool) -> list[tuple[str, bool]]:
    """The subjects, sorted, and whether they are deleted. Raises RegistryError."""
    present = set(registry.request("GET", "/subjects"))
    everything = set(registry.request("GET", "/subjects", {"deleted": "true"})) if with_deleted else present
    return sorted((name, name not in present) for name in everything | present)


def subject_row(registry: CallersRegistry, subject: str, *, is_deleted: bool) -> SubjectRow:
    """The row of a subject. A registry may list subjects that the caller may not read. Raises RegistryUnavailable."""
    parameters = {"deleted": "true"} if is_deleted else {}
    try:
        found = registry.request("GET", f"{subject_path(subject)}/versions/latest", parameters)
        return SubjectRow(subject, is_deleted, found.get("schemaType") or "AVRO", found["version"], found["id"])
    except RegistryUnavailable:
        raise
    except (RegistryError, KeyError, TypeError, AttributeError):
        return SubjectRow(subject, is_deleted)


def read_subject(registry: CallersRegistry, subject: str) -> SubjectView:
    """Raises RegistryError."""
    path = f"{subject_path(subject)}/versions"
    everything = registry.request("GET", path, {"deleted": "true"})
    present = set(_unless_missing(registry, path, []))
    return SubjectView(
        subject,
        tuple(VersionRow(version, version not in present) for version in sorted(everything, reverse=True)),
        read_compatibility(registry, subject),
        read_mode(registry, subject),
    )


def read_compatibility(registry: CallersRegistry, subject: str | None = None) -> Level:
    return _level(registry, "config", "compatibilityLevel", subject)


def read_mode(registry: CallersRegistry, subject: str | None = None) -> Level:
    return _level(registry, "mode", "mode", subject)


def _level(registry: CallersRegistry, resource: str, name: str, subject: str | None) -> Level:
    """The level of a subject, or of the registry. Its value is None if the caller may not read it."""
    try:
        if subject is not None:
            own = _unless_missing(registry, f"/{resource}/{quote(subject, safe='')}", {})
            if value := own.get(name):
                return Level(value, True)
        return Level(registry.request("GET", f"/{resource}").get(name), subject is None)
    except (RegistryError, AttributeError):
        return Level(None, False)


def read_version(registry: CallersRegistry, subject: str, version: int) -> SchemaVersion:
    """Raises RegistryError and NotThere."""
    path = f"{subject_path(subject)}/versions/{version}"
    found = registry.request("GET", path, {"deleted": "true"})
    try:
        schema_type = found.get("schemaType") or "AVRO"
        return SchemaVersion(
            subject,
            found["version"],
            found.get("id"),
            schema_type,
            found["schema"],
            formatted(found["schema"], schema_type),
            tuple(found.get("references") or ()),
            _referring(registry, path),
            found.get("metadata"),
            found.get("ruleSet"),
        )
    except (KeyError, TypeError, AttributeError):
        raise NotThere(f"The registry returned no schema for version {version} of {subject}.") from None


def _referring(registry: CallersRegistry, path: str) -> tuple[Mapping[str, Any], ...]:
    """The subjects and versions whose schemas refer to this one."""
    ids = _unless_missing(registry, f"{path}/referencedby", [])
    return tuple(
        {"id": schema_id, "subject": each["subject"], "version": each["version"]}
        for schema_id in ids[:_MOST_REFERRING]
        for each in _unless_missing(registry, f"/schemas/ids/{schema_id}/versions", [])
    )


def compare_versions(registry: CallersRegistry, subject: str, old: int, new: int) -> list[DiffLine]:
    """The differences of the formatted texts of two versions. Raises RegistryError, NotThere and Unacceptable."""
    return diff(read_version(registry, subject, old).formatted, read_version(registry, subject, new).formatted)


def _unless_missing(registry: CallersRegistry, path: str, default: Any) -> Any:
    try:
        return registry.request("GET", path)
    except RegistryError as error:
        if error.status != _NOT_FOUND:
            raise
        return default
