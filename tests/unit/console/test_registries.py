"""The registry as each caller reaches it."""

import base64
import json

import pytest

from kaspar.callers.identities import SERVICE, Identity
from kaspar.console.messages.contents import Kind, content_of
from kaspar.console.problems import Unacceptable
from kaspar.console.registries import CallersRegistry, Registries
from kaspar.console.schemas.browsing import read_subject, read_version, subject_names
from kaspar.console.schemas.changing import NewSchema, check, register, set_compatibility
from kaspar.schemas.schema import SchemaType
from kaspar.serialization.errors import RegistryError, RegistryUnavailable
from kaspar.serialization.registry_client import SchemaText
from kaspar.serialization.registry_config import registry_config
from kaspar.serialization.value_processes import ValueProcesses
from kaspar.web.identity import Scheme
from tests.peers.small_registry import Scripted, SmallRegistry

SCHEMA = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
ALICE = Identity("alice", Scheme.BASIC, "secret")


def registry_at(url: str) -> CallersRegistry:
    found = Registries({"schema.registry.url": url}, identities=5).of(SERVICE)
    assert found is not None
    return found


def authorization(registry: SmallRegistry) -> str:
    return {name.lower(): value for name, value in registry.requests[-1].headers.items()}.get("authorization", "")


def test_without_a_url_there_is_no_registry() -> None:
    for properties in ({}, {"schema.registry.url": " "}):
        registries = Registries(properties, identities=5)
        assert registries.of(SERVICE) is None
        assert registries.urls == ()


def test_callers_reach_it_with_their_own_credentials() -> None:
    with SmallRegistry() as small:
        own = {"schema.registry.url": small.url.replace("//", "//console:own@")}
        registries = Registries(own, identities=5)

        def asked_as(identity: Identity) -> str:
            found = registries.of(identity)
            assert found is not None
            found.request("GET", "/subjects")
            return authorization(small)

        assert asked_as(ALICE) == "Basic " + base64.b64encode(b"alice:secret").decode()
        assert asked_as(Identity("bob", Scheme.BEARER, "a.b.c")) == "Bearer a.b.c"
        assert asked_as(SERVICE) == "Basic " + base64.b64encode(b"console:own").decode()
        registries.close()


def test_a_few_callers_are_kept() -> None:
    registries = Registries({"schema.registry.url": "http://localhost:1"}, identities=2)
    callers = [Identity(name, Scheme.BASIC, "x") for name in ("a", "b", "c")]
    first = registries.of(callers[0])
    assert registries.of(callers[0]) is first
    registries.of(callers[1])
    registries.of(callers[2])
    assert registries.of(callers[0]) is not first
    registries.close()


def test_after_it_could_not_be_reached_records_are_shown_without_it_for_a_while() -> None:
    now = [0.0]
    with SmallRegistry() as small:
        config = registry_config({"schema.registry.url": small.url, "max.retries": "0"})
        registry = CallersRegistry(config, ValueProcesses(), monotonic=lambda: now[0])
        written = registry.client.register("orders-value", SchemaText(SchemaType.AVRO, SCHEMA))
        data = b"\0" + (written.id or 0).to_bytes(4) + b"\x0e"
        small.scripted.append(Scripted(503))
        with pytest.raises(RegistryError):
            registry.decode(data, None, is_key=False)
        small.scripted.clear()
        assert registry.decode(data, None, is_key=False).value == {"id": 7}
    with SmallRegistry() as gone:
        config = registry_config({"schema.registry.url": gone.url, "max.retries": "0"})
    registry = CallersRegistry(config, ValueProcesses(), monotonic=lambda: now[0])
    for _ in range(3):
        with pytest.raises(RegistryUnavailable):
            registry.decode(data, None, is_key=False)
    assert content_of(data, schemas=registry).kind is Kind.HEX
    registry.close()


def test_a_schema_without_a_subject_is_asked_for_once() -> None:
    with SmallRegistry() as small:
        registry = registry_at(small.url)
        small.scripted += [Scripted(200, b"[]"), Scripted(404)]
        for schema_id in (7, 7, 8, 8):
            assert registry.subject_of(schema_id) is None
        assert [each.path for each in small.requests] == ["/schemas/ids/7/versions", "/schemas/ids/8/versions"]


def test_subjects_and_versions_are_read() -> None:
    with SmallRegistry() as small:
        registry = registry_at(small.url)
        assert register(registry, NewSchema("a/b value", SCHEMA))["version"] == 1
        assert subject_names(registry, with_deleted=False) == [("a/b value", False)]
        subject = read_subject(registry, "a/b value")
        assert [(each.version, each.is_deleted) for each in subject.versions] == [(1, False)]
        version = read_version(registry, "a/b value", 1)
        assert (version.type, json.loads(version.text)) == ("AVRO", json.loads(SCHEMA))
        assert version.formatted.splitlines()[1] == '  "type": "record",'


def test_what_a_registry_says_about_a_schema_is_read() -> None:
    new = NewSchema("s", SCHEMA)
    reason = "{errorType:'X', description:'The field 'm' is missing', additionalInfo:'m'}"
    with SmallRegistry() as small:
        registry = registry_at(small.url)

        def verdict(status: int, body: object) -> tuple[bool, bool, tuple[str, ...]]:
            small.scripted.append(Scripted(status, json.dumps(body).encode()))
            found = check(registry, new)
            return found.is_valid, found.is_compatible, found.reasons

        assert verdict(200, {"is_compatible": True}) == (True, True, ())
        found = verdict(200, {"is_compatible": False, "messages": [reason, "{oldSchemaVersion: 1}"]})
        assert found == (True, False, ("The field 'm' is missing",))
        assert verdict(200, {"is_compatible": False, "messages": ["no"]}) == (True, False, ("no",))
        assert verdict(404, {"error_code": 40401, "message": "Subject not found."}) == (True, True, ())
        assert verdict(422, {"error_code": 42201, "message": "Invalid schema"}) == (False, False, ("Invalid schema",))
        small.scripted.append(Scripted(403, b'{"error_code": 40301, "message": "Forbidden"}'))
        with pytest.raises(RegistryError):
            check(registry, new)


def test_wrong_values_are_refused_before_the_registry_is_asked() -> None:
    registry = registry_at("http://localhost:1")
    for change in (
        lambda: set_compatibility(registry, "s", "SOMETIMES"),
        lambda: set_compatibility(registry, None, None),
        lambda: check(registry, NewSchema("", SCHEMA)),
        lambda: check(registry, NewSchema("s", SCHEMA, "XML")),
    ):
        with pytest.raises(Unacceptable):
            change()
    registry.close()


def test_large_values_are_encoded_and_decoded_by_processes() -> None:
    with SmallRegistry() as small:
        registries = Registries({"schema.registry.url": small.url}, identities=5)
        registry = registries.of(SERVICE)
        assert registry is not None
        text = '{"type":"array","items":["null",{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}]}'
        schema = registry.client.register("large-value", SchemaText(SchemaType.AVRO, text))
        value = [{"R": {"a": number}} for number in range(3000)]
        data = registry.encode(schema, None, json.dumps(value).encode())
        found = content_of(data, schemas=registry)
        assert (found.kind, found.value) == (Kind.AVRO, value)
        registries.close()
        found = content_of(data, schemas=registry)
        assert (found.kind, found.problem) == (Kind.HEX, "The value takes too much time or memory to decode.")
