"""Tags inside of schemas: added, removed and found."""

from typing import Any

from tests.unit.registry.memory import MemoryRegistry, avro_record

TAGS = "confluent:tags"
ORDER = (
    '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"long"},'
    '{"name":"by","type":["null",{"type":"record","name":"Customer","fields":[{"name":"name","type":"string"}]}]}]}'
)


def tags(path: str, *names: str, field: bool = True) -> dict[str, Any]:
    entity = {"entityPath": path, "entityType": "SR_FIELD" if field else "SR_RECORD"}
    return {"schemaEntity": entity, "tags": list(names)}


def test_tags_make_a_new_version_with_its_number_in_the_metadata(registry: MemoryRegistry) -> None:
    registry.register("orders", ORDER)
    added = [tags("shop.Order", "CORE", field=False), tags("shop.Customer.name", "PII", "NAME")]
    response = registry.request("POST", "/subjects/orders/versions/1/tags", {"tagsToAdd": added}).json
    assert (response["version"], response["id"]) == (2, 2)
    assert response["metadata"] == {"properties": {"confluent:version": "2"}}
    stored = registry.get("/subjects/orders/versions/2")
    assert stored["schema"] == response["schema"]
    assert '{"name":"name","type":"string","confluent:tags":["PII","NAME"]}' in stored["schema"]
    assert stored["schema"].endswith('"confluent:tags":["CORE"]}')


def test_tags_are_removed(registry: MemoryRegistry) -> None:
    registry.register("orders", ORDER)
    change = "/subjects/orders/versions/latest/tags"
    registry.request("POST", change, {"tagsToAdd": [tags("shop.Order.id", "A", "B")], "newVersion": 2})
    body = {"tagsToRemove": [tags("shop.Order.id", "B", "C")], "tagsToAdd": [tags("shop.Order.id", "D")]}
    assert '"confluent:tags":["A","D"]' in registry.request("POST", change, body).json["schema"]
    body = {"tagsToRemove": [tags(".shop.Order.id", "A", "D")]}
    assert TAGS not in registry.request("POST", change, body).json["schema"]
    assert registry.get("/subjects/orders/versions/latest")["metadata"]["properties"] == {"confluent:version": "4"}


def test_new_version_has_to_be_the_next(registry: MemoryRegistry) -> None:
    registry.register("orders", ORDER)
    body = {"newVersion": 4, "tagsToAdd": [tags("shop.Order.id", "A")]}
    response = registry.request("POST", "/subjects/orders/versions/1/tags", body)
    assert response.error == (422, 42201, "Version is not one more than previous version")


def test_metadata_and_rules_are_changed_with_the_tags(registry: MemoryRegistry) -> None:
    def rule(name: str, expr: str) -> dict[str, str]:
        return {"name": name, "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": expr}

    registry.register("orders", ORDER, ruleSet={"domainRules": [rule("a", "1"), rule("b", "1")]})
    body = {
        "tagsToAdd": [tags("shop.Order.id", "A")],
        "metadata": {"properties": {"owner": "team"}},
        "rulesToMerge": {"domainRules": [rule("b", "2"), rule("c", "2")]},
        "rulesToRemove": ["a"],
    }
    response = registry.request("POST", "/subjects/orders/versions/1/tags", body).json
    assert response["metadata"]["properties"] == {"confluent:version": "2", "owner": "team"}
    rules = {each["name"]: each["expr"] for each in response["ruleSet"]["domainRules"]}
    assert rules == {"b": "2", "c": "2"}


def test_schema_is_registered_with_tags(registry: MemoryRegistry) -> None:
    response = registry.register("orders", ORDER, schemaTagsToAdd=[tags("shop.Order.id", "A")])
    assert (response["version"], response["metadata"]) == (1, {"properties": {"confluent:version": "1"}})
    assert '"confluent:tags":["A"]' in registry.get("/schemas/ids/1")["schema"]
    again = registry.register("orders", ORDER, schemaTagsToAdd=[tags("shop.Order.id", "A")])
    assert again["version"] == 1


def test_tags_are_found(registry: MemoryRegistry) -> None:
    added = [tags("shop.Order", "CORE", field=False), tags("shop.Order.id", "A", "B"), tags("shop.Customer.name", "C")]
    registry.register("orders", ORDER, schemaTagsToAdd=added)
    for target in ("/schemas/ids/1", "/subjects/orders/versions/1"):
        assert "schemaTags" not in registry.get(target)
        assert registry.get(f"{target}?findTags=*")["schemaTags"] == added
        assert registry.get(f"{target}?findTags=C&findTags=B")["schemaTags"] == added[1:]
        assert registry.get(f"{target}?findTags=X")["schemaTags"] == []


def test_other_formats_have_no_tags_inside(registry: MemoryRegistry) -> None:
    registry.register("orders", '{"type":"object"}', schemaType="JSON")
    assert registry.get("/schemas/ids/1?findTags=*")["schemaTags"] == []
    response = registry.request("POST", "/subjects/orders/versions/1/tags", {"tagsToAdd": [tags("object.a", "A")]})
    assert response.error[1] == 42201
    assert "Only schemas of Avro can have tags inside" in response.error[2]


def test_large_schema_gets_tags(registry: MemoryRegistry) -> None:
    """In another process."""
    registry.register("orders", {**avro_record("a"), "doc": "x" * 40_000})
    response = registry.request("POST", "/subjects/orders/versions/1/tags", {"tagsToAdd": [tags("Order.a", "A")]})
    assert '"confluent:tags":["A"]' in response.json["schema"]
    assert registry.get("/schemas/ids/2?findTags=A")["schemaTags"] == [tags("Order.a", "A")]
