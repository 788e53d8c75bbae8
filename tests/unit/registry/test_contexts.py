"""Contexts: namespaces of subjects and ids."""

import pytest

from tests.unit.registry.memory import MemoryRegistry

STRING, INT = '"string"', '"int"'


def test_ids_are_given_per_context(registry: MemoryRegistry) -> None:
    assert registry.register("orders", STRING)["id"] == 1
    assert registry.register(":.eu:orders", INT)["id"] == 1
    assert registry.get("/schemas/ids/1")["schema"] == STRING
    assert registry.get("/schemas/ids/1?subject=:.eu:")["schema"] == INT
    assert registry.get("/contexts/eu/schemas/ids/1")["schema"] == INT


def test_path_may_begin_with_the_context(registry: MemoryRegistry) -> None:
    for context in ("eu", ".eu", ":.eu:"):
        response = registry.request("POST", f"/contexts/{context}/subjects/orders/versions", {"schema": STRING})
        assert response.json["id"] == 1
    assert registry.get("/contexts/.eu/subjects/orders/versions/1")["subject"] == ":.eu:orders"
    assert registry.get("/contexts/.eu/subjects") == [":.eu:orders"]
    assert [each["subject"] for each in registry.get("/contexts/.eu/schemas")] == [":.eu:orders"]
    assert registry.get("/contexts/us/subjects") == []


def test_context_of_the_path_gives_way_to_that_of_the_subject(registry: MemoryRegistry) -> None:
    registry.register(":.eu:orders", STRING)
    assert registry.get("/contexts/us/subjects/:.eu:orders/versions") == [1]


@pytest.mark.parametrize("target", ["/contexts/%2E/subjects", "/contexts/:.:/subjects", "/subjects?subjectPrefix="])
def test_default_context_alone(registry: MemoryRegistry, target: str) -> None:
    registry.register("orders", STRING)
    registry.register(":.eu:orders", STRING)
    assert registry.get(target) == ["orders"]


def test_all_contexts_are_listed_by_default(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.register(":.eu:orders", STRING)
    registry.register(":.eu:others", STRING)
    assert registry.get("/subjects") == [":.eu:orders", ":.eu:others", "orders"]
    assert registry.get("/subjects?subjectPrefix=:*:ord") == [":.eu:orders", "orders"]
    assert registry.get("/subjects?subjectPrefix=:.eu:ot") == [":.eu:others"]


def test_unqualified_subject_is_looked_for_in_all_contexts(registry: MemoryRegistry) -> None:
    registry.register(":.eu:orders", STRING)
    assert registry.get("/subjects/orders/versions/1")["subject"] == ":.eu:orders"
    assert registry.request("POST", "/subjects/orders", {"schema": STRING}).json["subject"] == ":.eu:orders"
    assert registry.get("/schemas/ids/1?subject=orders")["subject"] == ":.eu:orders"
    assert registry.request("GET", "/subjects/:.us:orders/versions/1").error[1] == 40401


def test_schema_has_one_guid_in_all_contexts(registry: MemoryRegistry) -> None:
    registry.register("first", INT)
    guid = registry.register("orders", STRING)["guid"]
    assert registry.register(":.eu:orders", STRING)["guid"] == guid
    assert registry.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 2}, {"context": ".eu", "id": 1}]


def test_schema_that_only_another_context_has_is_found_by_its_guid(registry: MemoryRegistry) -> None:
    guid = registry.register(":.eu:orders", STRING)["guid"]
    assert registry.get(f"/schemas/guids/{guid}")["schema"] == STRING


def test_context_is_recorded_once(registry: MemoryRegistry) -> None:
    registry.register(":.eu:a", STRING)
    registry.register(":.eu:b", STRING)
    assert sum(b'"CONTEXT"' in key for key, _ in registry.log.records) == 1


def test_deleted_context_is_no_longer_listed(registry: MemoryRegistry) -> None:
    registry.register(":.eu:a", STRING)
    registry.request("DELETE", "/subjects/:.eu:a")
    assert registry.request("DELETE", "/contexts/.eu").error[1] == 42211
    registry.request("DELETE", "/subjects/:.eu:a?permanent=true")
    assert registry.request("DELETE", "/contexts/eu").status == 204
    assert registry.get("/contexts") == ["."]
    assert registry.request("DELETE", "/contexts/eu").status == 204


@pytest.mark.parametrize(("subject", "name"), [(":.eu:", ":.eu:"), (":.:", "")])
@pytest.mark.parametrize("permanent", ["false", "true"])
def test_context_is_not_deleted_as_a_subject(registry: MemoryRegistry, subject: str, name: str, permanent: str) -> None:
    registry.register("orders", STRING)
    registry.register(":.eu:orders", STRING)
    registry.request("PUT", "/config/:.eu:", {"compatibility": "NONE"})
    response = registry.request("DELETE", f"/subjects/{subject}?permanent={permanent}")
    assert response.error == (404, 40401, f"Subject '{name}' not found.")
    assert registry.get("/subjects") == [":.eu:orders", "orders"]
    assert registry.get("/config/:.eu:") == {"compatibilityLevel": "NONE"}


def test_context_with_a_colon_is_refused(registry: MemoryRegistry) -> None:
    assert registry.request("GET", "/contexts/a:b/subjects").error == (
        400,
        400,
        "Context name cannot contain a colon",
    )


def test_mode_and_config_of_a_context_by_its_path(registry: MemoryRegistry) -> None:
    assert registry.request("PUT", "/contexts/eu/mode", {"mode": "FORWARD"}).status == 200
    assert registry.get("/mode/:.eu:") == {"mode": "FORWARD"}
    assert registry.get("/contexts/eu/mode") == {"mode": "FORWARD"}
    assert registry.get("/contexts/eu/mode/orders?defaultToGlobal=true") == {"mode": "FORWARD"}
    assert registry.request("PUT", "/contexts/eu/config/orders", {"compatibility": "NONE"}).status == 200
    assert registry.get("/config/:.eu:orders") == {"compatibilityLevel": "NONE"}


def test_contexts_are_listed_by_prefix(registry: MemoryRegistry) -> None:
    for context in (".eu", ".eu-west", ".us"):
        registry.register(f":{context}:orders", STRING)
    assert registry.get("/contexts?contextPrefix=.eu") == [".eu", ".eu-west"]
    assert registry.get("/contexts?contextPrefix=.eu&offset=1&limit=5") == [".eu-west"]
    assert registry.get("/contexts?contextPrefix=.x") == []
