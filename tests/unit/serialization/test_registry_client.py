"""What the client asks the registry for, and what it keeps."""

import json
import pickle
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from kaspar.schemas.schema import Reference, SchemaType
from kaspar.serialization.errors import RegistryError, RegistryUnavailable
from kaspar.serialization.mock_registry import MockRegistry, drop_mock_registry
from kaspar.serialization.registry_client import RegistryClient, SchemaText, shared_client
from kaspar.serialization.registry_config import registry_config

INT = SchemaText(SchemaType.AVRO, '"int"')
LONG = SchemaText(SchemaType.AVRO, '"long"')


class Counted:
    """A registry that counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: RegistryError | None = None
        self._registry = MockRegistry()

    def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        self.asked.append(f"{method} {path}{'?' if query else ''}{query}")
        if self.failure is not None:
            raise self.failure
        return self._registry.request(method, path, parameters, body)

    def close(self) -> None:
        pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Setup:
    def __init__(self, **properties: str) -> None:
        self.registry = Counted()
        self.clock = Clock()
        config = registry_config({"schema.registry.url": "http://localhost", **properties})
        self.client = RegistryClient(config, requests=self.registry, monotonic=self.clock)


def test_schema_is_registered_once() -> None:
    setup = Setup()
    found = [setup.client.register("t-value", INT) for _ in range(3)]
    assert {each.id for each in found} == {1}
    assert setup.registry.asked == ["POST /subjects/t-value/versions"]


def test_names_of_subjects_are_quoted_and_flags_are_sent() -> None:
    setup = Setup()
    setup.client.register("a/b c", INT, normalize=True)
    assert setup.registry.asked == ["POST /subjects/a%2Fb%20c/versions?normalize=true"]
    assert setup.client.subjects() == ["a/b c"]


def test_schema_is_asked_for_once_by_its_id() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    found = [setup.client.schema_by_id(1).schema for _ in range(3)]
    assert found == [INT] * 3
    assert setup.registry.asked.count("GET /schemas/ids/1") == 1
    assert setup.client.cached(1) is not None
    assert setup.client.cached(2) is None


def test_id_of_a_context_is_another() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    setup.client.schema_by_id(1)
    setup.client.schema_by_id(1, subject=":.dev:t-value")
    assert setup.registry.asked[-1] == "GET /schemas/ids/1?subject=:.dev:t-value"


def test_schema_by_its_guid() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    guid = setup.client.schema_by_id(1).guid
    assert guid is not None
    assert setup.client.schema_by_guid(guid).schema == INT
    assert setup.client.cached(guid) is not None


def test_lookup_of_what_is_not_registered() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    assert setup.client.lookup("t-value", INT).version == 1
    with pytest.raises(RegistryError, match="Schema not found") as caught:
        setup.client.lookup("t-value", LONG)
    assert (caught.value.status, caught.value.error_code) == (404, 40403)


def test_lookup_does_not_remember_what_is_missing() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    with pytest.raises(RegistryError):
        setup.client.lookup("t-value", LONG)
    setup.client.register("t-value", LONG)
    assert setup.client.lookup("t-value", LONG).version == 2


def test_latest_version_is_asked_for_again() -> None:
    setup = Setup(**{"latest.cache.ttl.sec": "60"})
    setup.client.register("t-value", INT)
    assert setup.client.latest("t-value").version == 1
    setup.client.register("t-value", LONG)
    setup.clock.now = 59.9
    assert setup.client.latest("t-value").version == 1
    setup.clock.now = 60
    assert setup.client.latest("t-value").version == 2


def test_unknown_id_is_not_asked_for_with_every_record() -> None:
    setup = Setup(**{"missing.id.cache.ttl.sec": "1"})
    for _ in range(3):
        with pytest.raises(RegistryError, match="Schema 1 not found"):
            setup.client.schema_by_id(1)
    assert len(setup.registry.asked) == 1
    setup.client.register("t-value", INT)
    setup.clock.now = 1
    assert setup.client.schema_by_id(1).schema == INT


def test_registry_that_was_away_is_asked_again() -> None:
    setup = Setup()
    setup.client.register("t-value", INT)
    setup.registry.failure = RegistryUnavailable("It is away.")
    with pytest.raises(RegistryUnavailable):
        setup.client.schema_by_id(1)
    setup.registry.failure = None
    assert setup.client.schema_by_id(1).schema == INT


def test_cache_is_bounded() -> None:
    setup = Setup(**{"max.schemas.per.subject": "2"})
    for number in range(3):
        text = json.dumps({"type": "fixed", "name": "F", "size": number + 1})
        setup.client.register("t-value", SchemaText(SchemaType.AVRO, text))
    for number in (1, 2, 1, 3):
        setup.client.schema_by_id(number)
    assert [number for number in (1, 2, 3) if setup.client.cached(number) is not None] == [1, 3]


def test_references_come_with_theirs_in_order() -> None:
    setup = Setup()

    def register(name: str, *uses: str) -> SchemaText:
        fields = [{"name": use.lower(), "type": use} for use in uses]
        text = json.dumps({"type": "record", "name": name, "fields": fields}, separators=(",", ":"))
        schema = SchemaText(SchemaType.AVRO, text, tuple(Reference(use, use, 1) for use in uses))
        setup.client.register(name, schema)
        return schema

    register("C")
    register("B", "C")
    schema = register("A", "B", "C")
    found = setup.client.version("A", 1)
    assert found.schema == schema
    assert list(found.referenced) == ["C", "B"]
    assert json.loads(found.referenced["B"])["name"] == "B"


def test_references_in_a_circle_end() -> None:
    """No registry accepts them; one that is broken must not hang its clients."""

    class Circle:
        def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
            return {"id": 1, "schema": "{}", "references": [{"name": "A", "subject": "A", "version": 1}]}

        def close(self) -> None:
            pass

    client = RegistryClient(registry_config({"schema.registry.url": "http://localhost"}), requests=Circle())
    assert list(client.version("A", 1).referenced) == ["A"]


@pytest.mark.parametrize("response", [[], {}, {"schema": 1, "schemaType": "XML"}, {"schema": "{}", "references": [1]}])
def test_response_that_is_no_schema(response: Any) -> None:
    class Broken:
        def request(self, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> Any:
            return response

        def close(self) -> None:
            pass

    client = RegistryClient(registry_config({"schema.registry.url": "http://localhost"}), requests=Broken())
    with pytest.raises(RegistryError, match="The registry sent no schema"):
        client.schema_by_id(1)
    with pytest.raises(RegistryError, match="The registry sent no schema"):
        client.register("s", INT)


def test_clients_of_a_mock_share_it_by_its_name() -> None:
    configs = [registry_config({"schema.registry.url": f"mock://{name}"}) for name in ("one", "one", "two")]
    first, second, other = map(RegistryClient, configs)
    try:
        first.register("t-value", INT)
        assert second.schema_by_id(1).schema == INT
        with pytest.raises(RegistryError):
            other.schema_by_id(1)
    finally:
        for name in ("one", "two"):
            drop_mock_registry(name)


def test_emptied_mock_is_empty_for_its_clients() -> None:
    client = RegistryClient(registry_config({"schema.registry.url": "mock://emptied"}))
    client.register("t-value", INT)
    client.schema_by_id(1)
    drop_mock_registry("emptied")
    with pytest.raises(RegistryError):
        client.schema_by_id(1)
    assert client.register("t-value", LONG).id == 1
    drop_mock_registry("emptied")


def test_process_has_one_client_for_a_configuration() -> None:
    config = registry_config({"schema.registry.url": "mock://shared"})
    assert shared_client(config) is shared_client(pickle.loads(pickle.dumps(config)))


def test_errors_are_pickled() -> None:
    error = pickle.loads(pickle.dumps(RegistryUnavailable("It is away.")))
    assert (type(error), str(error), error.status, error.error_code) == (RegistryUnavailable, "It is away.", 503, 50301)


def test_metadata_and_rules_are_sent_and_returned() -> None:
    setup = Setup()
    schema = SchemaText(SchemaType.AVRO, '"int"', (), '{"properties": {"a": "b"}}', '{"domainRules": []}')
    setup.client.register("t-value", schema)
    assert setup.client.schema_by_id(1).schema == schema


def test_unknown_guid() -> None:
    with pytest.raises(RegistryError) as caught:
        Setup().client.schema_by_guid(UUID(int=1))
    assert caught.value.status == 404
