"""A registry in this process, for unit tests, with `mock://name` as its URL, as for Confluent's MockSchemaRegistry.

Clients with the same name share it. It stores schemas, ids and versions, does not check compatibility, and is lost with
the process or by `drop_mock_registry`, after which the same clients find it empty.
"""

import hashlib
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from kaspar.schemas.schema import InvalidSchema, ParsedSchema, SchemaType, format_of
from kaspar.serialization.errors import RegistryError

_registries: dict[str, "MockRegistry"] = {}
_lock = threading.Lock()


def mock_registry(scope: str) -> "MockRegistry":
    with _lock:
        return _registries.setdefault(scope, MockRegistry())


def drop_mock_registry(scope: str) -> None:
    with _lock:
        _registries.pop(scope, None)


class MockRequests:
    """Sends a client's requests to the registry with this name."""

    def __init__(self, scope: str) -> None:
        self._scope = scope

    def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
        return mock_registry(self._scope).request(method, path, parameters, body)

    def close(self) -> None:
        """Does nothing, since other clients may use the registry."""


class MockRegistry:
    """Responds to the requests of RegistryClient like a registry over HTTP."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[int, dict[str, Any]] = {}
        self._subjects: dict[str, dict[int, int]] = {}
        """For each subject the schema id of each version."""

    def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
        steps = [unquote(step) for step in path.strip("/").split("/")]
        with self._lock:
            found = self._response(method, steps, body)
        form = parameters.get("format")
        return self._in_form(found, form) if form and isinstance(found, dict) and "schema" in found else found

    def _response(self, method: str, steps: list[str], body: Any) -> Any:
        match method, steps:
            case "GET", ["subjects"]:
                return sorted(self._subjects)
            case "GET", ["subjects", subject, "versions"]:
                return list(self._versions(subject))
            case "POST", ["subjects", subject, "versions"]:
                return self._register(subject, body)
            case "POST", ["subjects", subject]:
                return self._lookup(subject, body)
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "GET", ["schemas", "ids", number]:
                return self._schema(int(number))
            case "GET", ["schemas", "guids", guid]:
                return self._schema_of_guid(guid)
        raise RegistryError("HTTP 404 Not Found", status=404, error_code=404)

    def _register(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        schema = self._checked(body)
        schema_id = next((number for number, each in self._by_id.items() if each == schema), len(self._by_id) + 1)
        self._by_id[schema_id] = schema
        versions = self._subjects.setdefault(subject, {})
        if schema_id not in versions.values():
            versions[len(versions) + 1] = schema_id
        return self._lookup(subject, body)

    def _lookup(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        versions, schema = self._versions(subject), self._checked(body)
        for version, schema_id in versions.items():
            if self._by_id[schema_id] == schema:
                return self._described(subject, version, schema_id)
        raise RegistryError("Schema not found", status=404, error_code=40403)

    def _version(self, subject: str, text: str) -> dict[str, Any]:
        versions = self._versions(subject)
        version = max(versions) if text in ("latest", "-1") else int(text)
        if version not in versions:
            raise RegistryError(f"Version {version} not found.", status=404, error_code=40402)
        return self._described(subject, version, versions[version])

    def _versions(self, subject: str) -> dict[int, int]:
        if subject not in self._subjects:
            raise RegistryError(f"Subject '{subject}' not found.", status=404, error_code=40401)
        return self._subjects[subject]

    def _described(self, subject: str, version: int, schema_id: int) -> dict[str, Any]:
        return {"subject": subject, "version": version, "id": schema_id, **self._schema(schema_id)}

    def _schema(self, schema_id: int) -> dict[str, Any]:
        if schema_id not in self._by_id:
            raise RegistryError(f"Schema {schema_id} not found", status=404, error_code=40403)
        return {**self._by_id[schema_id], "guid": str(_guid(self._by_id[schema_id]))}

    def _schema_of_guid(self, text: str) -> dict[str, Any]:
        for schema_id, schema in self._by_id.items():
            if str(_guid(schema)) == text:
                return {"id": schema_id, **self._schema(schema_id)}
        raise RegistryError(f"Schema {text} not found", status=404, error_code=40403)

    def _checked(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The schema as it is stored: texts that differ only in white space are one schema."""
        try:
            parsed = self._parsed(body)
        except InvalidSchema as problem:
            raise RegistryError(f"Invalid schema: {problem}", status=422, error_code=42201) from None
        more = {name: body[name] for name in ("references", "metadata", "ruleSet") if body.get(name)}
        return {"schema": parsed.canonical, "schemaType": parsed.type.value, **more}

    def _in_form(self, schema: Mapping[str, Any], form: str) -> dict[str, Any]:
        return {**schema, "schema": self._parsed(schema).formatted(form)}

    def _parsed(self, schema: Mapping[str, Any]) -> ParsedSchema:
        referenced: dict[str, str] = {}
        self._collect(schema, referenced)
        return format_of(SchemaType(schema.get("schemaType") or "AVRO")).parse(schema["schema"], referenced)

    def _collect(self, schema: Mapping[str, Any], found: dict[str, str]) -> None:
        """Collect the texts that a schema refers to, dependencies first."""
        for reference in schema.get("references") or ():
            referenced = self._version(reference["subject"], str(reference["version"]))
            self._collect(referenced, found)
            found[reference["name"]] = referenced["schema"]


def _guid(schema: Mapping[str, Any]) -> UUID:
    return UUID(bytes=hashlib.md5(repr(sorted(schema.items())).encode(), usedforsecurity=False).digest())
