import pytest

from tests.unit.registry.memory import MemoryRegistry, avro_record

STRING = '"string"'


def test_version_is_soft_deleted_and_then_deleted(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    assert registry.request("DELETE", "/subjects/orders/versions/1").text == "1"
    assert registry.request("GET", "/subjects/orders/versions/1").status == 404
    assert registry.get("/subjects/orders/versions/1?deleted=true")["deleted"] is True
    assert registry.request("DELETE", "/subjects/orders/versions/1?permanent=true").text == "1"
    assert registry.request("GET", "/subjects/orders/versions/1?deleted=true").error[1] == 40401
    assert registry.get("/subjects?deleted=true") == []


def test_deleting_a_subject_writes_one_record(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))
    registry.request("DELETE", "/subjects/orders")
    assert registry.log.records[-1] == (
        b'{"keytype":"DELETE_SUBJECT","subject":"orders","magic":0}',
        b'{"subject":"orders","version":2}',
    )


def test_subject_with_a_live_version_is_not_deleted_for_good(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))
    registry.request("DELETE", "/subjects/orders/versions/1")
    assert registry.request("DELETE", "/subjects/orders?permanent=true").error[1] == 40405


def test_soft_delete_leaves_earlier_soft_deleted_versions(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))
    registry.request("DELETE", "/subjects/orders/versions/1")
    assert registry.request("DELETE", "/subjects/orders").json == [2]
    assert registry.request("DELETE", "/subjects/orders?permanent=true").json == [1, 2]


def test_config_and_mode_of_a_subject_go_with_its_last_version(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("PUT", "/config/orders", {"compatibility": "NONE"})
    registry.request("PUT", "/mode/orders", {"mode": "READWRITE"})
    registry.request("DELETE", "/subjects/orders")
    assert registry.get("/config/orders") == {"compatibilityLevel": "NONE"}
    registry.request("DELETE", "/subjects/orders?permanent=true")
    assert registry.request("GET", "/config/orders").status == 404
    assert registry.request("GET", "/mode/orders").status == 404


def test_config_goes_with_the_last_version_that_is_deleted_one_by_one(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("PUT", "/config/orders", {"compatibility": "NONE"})
    registry.request("DELETE", "/subjects/orders/versions/1")
    registry.request("DELETE", "/subjects/orders/versions/1?permanent=true")
    assert registry.request("GET", "/config/orders").status == 404


def test_id_of_a_soft_deleted_schema_can_be_looked_up(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("DELETE", "/subjects/orders")
    assert registry.get("/schemas/ids/1")["schema"] == STRING


@pytest.mark.parametrize("subject", ["dropped", ":.eu:dropped"])
def test_id_of_a_purged_schema_is_not_given_again_after_compaction(registry: MemoryRegistry, subject: str) -> None:
    """The cleaner removes the record and, later, its tombstone."""
    registry.register("orders", STRING)
    purged = registry.register(subject, '"bytes"')["id"]
    for permanent in ("false", "true"):
        assert registry.request("DELETE", f"/subjects/{subject}?permanent={permanent}").status == 200
    with MemoryRegistry() as restarted:
        latest = dict(registry.log.records)
        for offset, (key, value) in enumerate(latest.items()):
            if value is not None:
                restarted.state.replay(key, value, offset, 0)
        assert restarted.register(subject, '"long"')["id"] == purged + 1


def test_highest_ids_of_all_contexts_are_in_one_record(registry: MemoryRegistry) -> None:
    for subject in ("a", ":.eu:a", "b", ":.us:a"):
        registry.register(subject, '"bytes"')
        registry.register(subject, STRING)
        for permanent in ("false", "true"):
            assert registry.request("DELETE", f"/subjects/{subject}?permanent={permanent}").status == 200
    key = b'{"keytype":"NOOP","magic":1}'
    assert [value for each, value in registry.log.records if each == key] == [
        b'{"maxIds":{".":2}}',
        b'{"maxIds":{".":2,".eu":2}}',
        b'{"maxIds":{".eu":2,".":4}}',
        b'{"maxIds":{".eu":2,".":4,".us":2}}',
    ]


def test_import_over_the_highest_id_keeps_it(registry: MemoryRegistry) -> None:
    registry.request("PUT", "/mode", {"mode": "IMPORT"})
    registry.register("orders", STRING, version=1, id=9)
    registry.register("orders", '"bytes"', version=1, id=3)
    registry.request("PUT", "/mode", {"mode": "READWRITE"})
    with MemoryRegistry() as restarted:
        for offset, (key, value) in enumerate(dict(registry.log.records).items()):
            restarted.state.replay(key, value, offset, 0)
        assert restarted.register("payments", '"long"')["id"] == 10


def test_id_that_another_subject_uses_outlives_a_deletion(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.register("payments", STRING)
    registry.request("DELETE", "/subjects/orders")
    registry.request("DELETE", "/subjects/orders?permanent=true")
    assert registry.get("/schemas/ids/1/versions") == [{"subject": "payments", "version": 1}]
    assert registry.register("orders", STRING)["id"] == 1


@pytest.mark.parametrize("target", ["/subjects/orders/versions/latest", "/subjects/orders/versions/-1"])
def test_latest_is_the_latest_that_is_not_deleted(registry: MemoryRegistry, target: str) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))
    assert registry.request("DELETE", target).text == "2"
    assert registry.request("DELETE", target).text == "1"
    assert registry.request("DELETE", target).error[1] == 40402
