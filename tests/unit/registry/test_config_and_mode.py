from typing import Any

import pytest

from kaspar.registry.options import RegistryOptions
from kaspar.schemas.levels import CompatibilityLevel
from tests.unit.registry.memory import MemoryRegistry, avro_record

STRING, INT = '"string"', '"int"'


def put(registry: MemoryRegistry, target: str, body: Any) -> None:
    response = registry.request("PUT", target, body)
    assert response.status == 200, response.text


def test_default_level_is_a_setting() -> None:
    with MemoryRegistry(options=RegistryOptions(compatibility_level=CompatibilityLevel.FULL)) as registry:
        assert registry.get("/config") == {"compatibilityLevel": "FULL"}


def test_config_of_a_subject_wins_over_that_of_the_registry(registry: MemoryRegistry) -> None:
    put(registry, "/config", {"compatibility": "NONE"})
    put(registry, "/config/orders", {"compatibility": "BACKWARD"})
    registry.register("orders", STRING)
    registry.register("others", STRING)
    assert registry.try_register("orders", INT).status == 409
    assert registry.try_register("others", INT).status == 200


def test_config_without_a_level_inherits_it(registry: MemoryRegistry) -> None:
    put(registry, "/config", {"compatibility": "NONE"})
    put(registry, "/config/orders", {"normalize": True})
    assert registry.get("/config/orders") == {"normalize": True}
    expected = {"normalize": True, "compatibilityLevel": "NONE"}
    assert registry.get("/config/orders?defaultToGlobal=true") == expected


def test_config_is_changed_field_by_field_and_null_resets(registry: MemoryRegistry) -> None:
    put(registry, "/config/orders", {"compatibility": "FULL", "alias": "o", "compatibilityGroup": "g"})
    put(registry, "/config/orders", {"compatibility": "NONE"})
    assert registry.get("/config/orders")["alias"] == "o"
    put(registry, "/config/orders", {"alias": None})
    assert registry.get("/config/orders") == {"compatibilityLevel": "NONE", "compatibilityGroup": "g"}


def test_deleted_config_is_that_of_the_registry_again(registry: MemoryRegistry) -> None:
    put(registry, "/config", {"compatibility": "FORWARD"})
    put(registry, "/config/orders", {"compatibility": "NONE"})
    assert registry.request("DELETE", "/config/orders").json == {"compatibilityLevel": "NONE"}
    assert registry.get("/config/orders?defaultToGlobal=true") == {"compatibilityLevel": "FORWARD"}
    assert registry.request("DELETE", "/config").json == {"compatibilityLevel": "FORWARD"}
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}


def test_context_has_a_config_of_its_own(registry: MemoryRegistry) -> None:
    put(registry, "/config", {"compatibility": "NONE"})
    assert registry.get("/config/:.eu:x?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    put(registry, "/contexts/eu/config", {"compatibility": "FULL"})
    assert registry.get("/config/:.eu:") == {"compatibilityLevel": "FULL"}
    assert registry.get("/config/:.eu:x?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}


def test_global_context_applies_to_all(registry: MemoryRegistry) -> None:
    put(registry, "/config/:.__GLOBAL:", {"compatibility": "FORWARD"})
    for target in ("/config", "/config/x?defaultToGlobal=true", "/config/:.eu:x?defaultToGlobal=true"):
        assert registry.get(target) == {"compatibilityLevel": "FORWARD"}
    put(registry, "/config", {"compatibility": "FULL"})
    assert registry.get("/config/x?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}


def test_alias_stands_for_its_subject(registry: MemoryRegistry) -> None:
    put(registry, "/config/o", {"alias": "orders"})
    registry.register("o", STRING)
    assert registry.get("/subjects") == ["orders"]
    assert registry.get("/subjects/o/versions/latest")["subject"] == "orders"
    assert registry.get("/schemas/ids/1?subject=o")["subject"] == "orders"
    listed = registry.get("/schemas?subjectPrefix=o&aliases=true")
    assert [(each["subject"], each.get("aliases")) for each in listed] == [("orders", ["o"])]
    assert registry.request("DELETE", "/subjects/o").json == [1]


def test_aliases_bring_the_schemas_of_other_prefixes(registry: MemoryRegistry) -> None:
    put(registry, "/config/x", {"alias": "orders"})
    registry.register("orders", STRING)
    assert registry.get("/schemas?subjectPrefix=x") == []
    assert [each["subject"] for each in registry.get("/schemas?subjectPrefix=x&aliases=true")] == ["orders"]


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_read_only_subject_cannot_be_written(registry: MemoryRegistry, mode: str) -> None:
    registry.register("orders", STRING)
    put(registry, "/mode/orders", {"mode": mode})
    message = "Subject orders in context  is in read-only mode"
    assert registry.try_register("orders", INT).error == (422, 42205, message)
    assert registry.request("DELETE", "/subjects/orders").error == (422, 42205, message)
    assert registry.request("PUT", "/config/orders", {"compatibility": "NONE"}).error == (422, 42205, message)


def test_existing_schema_is_returned_in_a_read_only_registry(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    put(registry, "/mode", {"mode": "READONLY"})
    assert registry.register("orders", STRING)["id"] == 1


def test_mode_of_a_subject_wins_unless_it_is_overridden(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "READONLY"})
    put(registry, "/mode/orders", {"mode": "READWRITE"})
    assert registry.try_register("orders", STRING).status == 200
    put(registry, "/mode", {"mode": "READONLY_OVERRIDE"})
    assert registry.try_register("orders", INT).error[1] == 42205
    assert registry.get("/mode/orders?defaultToGlobal=true") == {"mode": "READONLY_OVERRIDE"}


def test_deleted_mode_is_that_of_the_registry_again(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "READONLY"})
    put(registry, "/mode/orders", {"mode": "READWRITE"})
    assert registry.request("DELETE", "/mode/orders").json == {"mode": "READWRITE"}
    assert registry.get("/mode/orders?defaultToGlobal=true") == {"mode": "READONLY"}
    assert registry.request("DELETE", "/mode").json == {"mode": "READONLY"}
    assert registry.get("/mode") == {"mode": "READWRITE"}


def test_import_keeps_ids_and_versions(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "IMPORT"})
    stored = registry.register("orders", STRING, id=100, version=7)
    assert (stored["id"], stored["version"]) == (100, 7)
    # Nothing is checked against what is there, and versions may come in any order.
    assert registry.register("orders", INT, id=50, version=3)["version"] == 3
    assert registry.get("/subjects/orders/versions") == [3, 7]


def test_import_without_an_id_is_refused(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "IMPORT"})
    message = "Subject orders in context  is not in read-write mode"
    assert registry.try_register("orders", STRING).error == (422, 42205, message)


def test_import_does_not_give_an_id_to_another_schema(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "IMPORT"})
    registry.register("orders", STRING, id=100)
    assert registry.try_register("others", INT, id=100).error == (
        422,
        42205,
        "Overwrite new schema with id 100 in context  is not permitted.",
    )


def test_import_is_idempotent(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "IMPORT"})
    one = registry.register("orders", STRING, id=100, version=7)
    written = len(registry.log.records)
    assert registry.register("orders", STRING, id=100, version=7) == one
    assert len(registry.log.records) == written


def test_ids_go_on_after_an_import(registry: MemoryRegistry) -> None:
    put(registry, "/mode", {"mode": "IMPORT"})
    registry.register("orders", STRING, id=100)
    put(registry, "/mode", {"mode": "READWRITE"})
    assert registry.register("others", INT)["id"] == 101


def test_last_id_and_version_are_not_exceeded(registry: MemoryRegistry) -> None:
    """They are 32 bits wide for clients; what does not fit is not written."""
    put(registry, "/mode", {"mode": "IMPORT"})
    registry.register("orders", STRING, id=2**31 - 1, version=2**31 - 1)
    put(registry, "/mode", {"mode": "READWRITE"})
    written = len(registry.log.records)
    assert registry.try_register("others", INT).error[:2] == (500, 50001)
    assert registry.try_register("orders", '"bytes"').error[:2] == (422, 42201)
    assert registry.try_register("others", INT, id=2**31).status == 400
    assert len(registry.log.records) == written


def test_negative_id_is_none(registry: MemoryRegistry) -> None:
    assert registry.register("orders", STRING, id=-7)["id"] == 1


def test_import_begins_with_an_empty_registry(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("DELETE", "/subjects/orders")
    put(registry, "/mode", {"mode": "IMPORT"})
    assert registry.get("/subjects?deleted=true") == []
    assert registry.register("others", INT, id=1)["id"] == 1


def test_import_of_a_context_leaves_the_others(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    put(registry, "/mode/:.eu:", {"mode": "IMPORT"})
    assert registry.register(":.eu:orders", INT, id=9)["id"] == 9
    assert registry.get("/subjects") == [":.eu:orders", "orders"]
    assert registry.request("PUT", "/mode", {"mode": "IMPORT"}).error[1] == 42205


def test_forward_mode_takes_ids_too(registry: MemoryRegistry) -> None:
    put(registry, "/mode/orders", {"mode": "FORWARD"})
    assert registry.register("orders", STRING, id=5)["id"] == 5


@pytest.mark.parametrize(
    ("level", "new", "status"),
    [
        ("BACKWARD", avro_record("a"), 200),
        ("BACKWARD", avro_record("a", "b"), 409),
        ("FORWARD", avro_record("a", "b"), 200),
        ("FORWARD", avro_record("b"), 409),
        ("FULL", avro_record("a", optional=["b"]), 200),
        ("FULL", avro_record("a", "b"), 409),
        ("NONE", avro_record("z"), 200),
    ],
)
def test_level_decides_what_can_be_registered(registry: MemoryRegistry, level: str, new: Any, status: int) -> None:
    put(registry, "/config", {"compatibility": level})
    registry.register("orders", avro_record("a"))
    assert registry.try_register("orders", new).status == status


def test_transitive_levels_compare_with_all_versions(registry: MemoryRegistry) -> None:
    versions = [avro_record("a"), avro_record("a", optional=["b"]), avro_record("a", "b")]
    for level, status in [("BACKWARD", 200), ("BACKWARD_TRANSITIVE", 409)]:
        put(registry, f"/config/{level}", {"compatibility": level})
        registry.register(level, versions[0])
        registry.register(level, versions[1])
        assert registry.try_register(level, versions[2]).status == status


def test_compatibility_check_gives_its_reasons(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    response = registry.request(
        "POST",
        "/compatibility/subjects/orders/versions/1?verbose=true",
        {"schema": '{"type":"record","name":"Order","fields":[{"name":"b","type":"int"}]}'},
    )
    assert response.json["is_compatible"] is False
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in response.json["messages"][0]


def with_modes(registry: MemoryRegistry) -> None:
    for place in ("", "/orders", "/:.eu:", "/:.eu:orders", "/:.us:orders"):
        assert registry.request("PUT", f"/mode{place}", {"mode": "READONLY"}).status == 200


@pytest.mark.parametrize(
    ("target", "left"),
    [
        ("/mode", ["/orders", "/:.eu:", "/:.eu:orders", "/:.us:orders"]),
        ("/mode?recursive=true", ["/:.eu:", "/:.eu:orders", "/:.us:orders"]),
        ("/mode/:.eu:", ["/orders", "/:.eu:orders", "/:.us:orders"]),
        ("/mode/:.eu:?recursive=true", ["/orders", "/:.us:orders"]),
        ("/contexts/eu/mode?recursive=true", ["/orders", "/:.us:orders"]),
        ("/mode/:.us:?recursive=true", ["/orders", "/:.eu:", "/:.eu:orders"]),
        ("/mode/orders?recursive=true", ["/:.eu:", "/:.eu:orders", "/:.us:orders"]),
    ],
)
def test_recursive_deletion_of_a_mode_includes_the_subjects_of_its_context(
    registry: MemoryRegistry, target: str, left: list[str]
) -> None:
    with_modes(registry)
    assert registry.request("DELETE", target).json == {"mode": "READONLY" if ":.us:" not in target else "READWRITE"}
    places = ["/orders", "/:.eu:", "/:.eu:orders", "/:.us:orders"]
    assert [place for place in places if registry.request("GET", f"/mode{place}").status == 200] == left


def test_recursive_deletion_without_any_mode_is_an_error(registry: MemoryRegistry) -> None:
    assert registry.request("DELETE", "/mode/:.eu:?recursive=true").error[1] == 40401
