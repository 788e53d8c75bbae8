"""Schemas that refer to others: resolution, protection of what is referred to, and hostile references."""

import json
from typing import Any

import pytest

from kaspar.registry.entities import SchemaReference
from kaspar.registry.records import SchemaValue, schema_record
from kaspar.registry.references import MAX_DEPTH, MAX_REFERENCES
from tests.unit.registry.memory import MemoryRegistry

MONEY = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}


def order(price: Any = "shop.Money") -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "price", "type": price}]}


def reference(subject: str = "money", version: int = 1, name: str = "shop.Money") -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


def with_reference(registry: MemoryRegistry) -> Any:
    registry.register("money", MONEY)
    return registry.register("orders", order(), references=[reference()])


def test_references_are_stored_and_returned(registry: MemoryRegistry) -> None:
    stored = with_reference(registry)
    assert stored["references"] == [reference()]
    assert registry.get("/subjects/orders/versions/1")["references"] == [reference()]
    assert registry.get("/schemas/ids/2")["references"] == [reference()]


def test_other_references_make_another_schema(registry: MemoryRegistry) -> None:
    with_reference(registry)
    registry.register("money2", MONEY)
    assert registry.register("orders", order(), references=[reference("money2")])["version"] == 2


def test_missing_reference_is_refused(registry: MemoryRegistry) -> None:
    response = registry.try_register("orders", order(), references=[reference("nothing", 3)])
    assert response.error == (
        422,
        42201,
        'Invalid schema of type AVRO, details: No schema reference found for subject "nothing" and version 3',
    )


def test_version_minus_one_of_a_reference_is_the_latest(registry: MemoryRegistry) -> None:
    registry.register("money", MONEY)
    stored = registry.register("orders", order(), references=[reference(version=-1)])
    assert stored["references"] == [reference(version=1)]


def test_referenced_version_cannot_be_deleted_until_its_referrers_are(registry: MemoryRegistry) -> None:
    with_reference(registry)
    for target in ("/subjects/money", "/subjects/money/versions/1"):
        assert registry.request("DELETE", target).error[1] == 42206
    registry.request("DELETE", "/subjects/orders")
    assert registry.get("/subjects/money/versions/1/referencedby") == []
    assert registry.request("DELETE", "/subjects/money").status == 200


def test_one_of_two_referrers_still_protects(registry: MemoryRegistry) -> None:
    with_reference(registry)
    registry.register("copies", order(), references=[reference()])
    registry.request("DELETE", "/subjects/orders")
    assert registry.request("DELETE", "/subjects/money").error[1] == 42206


def test_schema_with_its_references_resolved_is_the_same_schema(registry: MemoryRegistry) -> None:
    with_reference(registry)
    resolved = order(MONEY)
    assert registry.register("orders", resolved)["version"] == 1
    looked_up = registry.request("POST", "/subjects/orders", {"schema": json.dumps(resolved)})
    assert looked_up.json["version"] == 1


def test_format_resolved_has_the_text_of_references(registry: MemoryRegistry) -> None:
    with_reference(registry)
    text = registry.get("/schemas/ids/2?format=resolved")["schema"]
    assert '"cents"' in text
    assert '"cents"' not in registry.get("/schemas/ids/2")["schema"]
    assert registry.request("GET", "/subjects/orders/versions/1/schema?format=resolved").text == text


def test_references_of_references_are_resolved(registry: MemoryRegistry) -> None:
    registry.register("money", MONEY)
    registry.register("orders", order(), references=[reference()])
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "shop.Order"}]}
    stored = registry.register("baskets", basket, references=[reference("orders", name="shop.Order")])
    assert stored["version"] == 1


def test_referrer_of_a_soft_deleted_version_still_works(registry: MemoryRegistry) -> None:
    """A topic may have it: Karapace deletes what is referred to."""
    with_reference(registry)
    for key, value in [
        schema_record(SchemaValue("money", 1, 1, schema=registry.get("/schemas/ids/1")["schema"], deleted=True))
    ]:
        registry.state.replay(key, value, 99, 0)
    assert registry.request(
        "POST", "/compatibility/subjects/orders/versions", {"schema": json.dumps(order()), "references": [reference()]}
    ).json == {"is_compatible": True}


def test_reference_of_a_context_is_looked_for_in_it(registry: MemoryRegistry) -> None:
    registry.register(":.eu:money", MONEY)
    assert registry.register(":.eu:orders", order(), references=[reference()])["id"] == 2
    assert registry.request("DELETE", "/subjects/:.eu:money").error[1] == 42206
    assert registry.get("/subjects/:.eu:money/versions/1/referencedby") == [2]


def test_reference_to_another_context(registry: MemoryRegistry) -> None:
    registry.register(":.eu:money", MONEY)
    registry.register("orders", order(), references=[reference(":.eu:money")])
    assert registry.request("DELETE", "/subjects/:.eu:money").error[1] == 42206


def import_chain(registry: MemoryRegistry, length: int, *, closed: bool) -> None:
    """Records that the registry itself would not write: each refers to the next one."""
    for number in range(length):
        last = number == length - 1
        target = f"s{0 if last else number + 1}"
        references = None if last and not closed else (SchemaReference(f"R{target}", target, 1),)
        value = SchemaValue(f"s{number}", 1, number + 1, references=references, schema=f'"string" {" " * number}')
        registry.state.replay(*schema_record(value), number, 0)


def test_cycle_of_references_is_refused(registry: MemoryRegistry) -> None:
    import_chain(registry, 3, closed=True)
    status, code, message = registry.try_register("orders", order(), references=[reference("s0")]).error
    assert (status, code) == (422, 42201)
    assert "form a cycle" in message


def test_deep_references_are_refused(registry: MemoryRegistry) -> None:
    import_chain(registry, 10 * MAX_DEPTH, closed=False)
    status, code, message = registry.try_register("orders", order(), references=[reference("s0")]).error
    assert (status, code) == (422, 42201)
    assert "levels deep" in message


def test_many_references_are_refused(registry: MemoryRegistry) -> None:
    registry.register("money", MONEY)
    references = [reference(name=f"n{number}") for number in range(MAX_REFERENCES + 1)]
    status, code, message = registry.try_register("orders", order(), references=references).error
    assert (status, code) == (422, 42201)
    assert "must not refer to more than" in message


def test_many_references_of_one_name_are_refused(registry: MemoryRegistry) -> None:
    registry.register("money", MONEY)
    references = [reference()] * (MAX_REFERENCES + 1)
    for target in ("/subjects/orders/versions", "/subjects/orders", "/compatibility/subjects/orders/versions"):
        response = registry.request("POST", target, {"schema": json.dumps(order()), "references": references})
        assert response.error[:2] == (422, 42201)
        assert "must not refer to more than" in response.error[2]
    assert registry.register("orders", order(), references=references[1:])["version"] == 1


def test_stored_version_with_many_references_of_one_name_is_not_resolved(registry: MemoryRegistry) -> None:
    """Another registry may have written it."""
    registry.register("money", MONEY)
    references = (SchemaReference("shop.Money", "money", 1),) * (MAX_REFERENCES + 1)
    value = SchemaValue("orders", 1, 2, references=references, schema=json.dumps(order()))
    registry.state.replay(*schema_record(value), 9, 0)
    assert "must not refer to more than" in registry.request("GET", "/schemas/ids/2?format=resolved").error[2]


def test_long_texts_of_references_are_refused(registry: MemoryRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaspar.registry.references.MAX_CHARACTERS", 20_000)
    for number in range(3):
        registry.register(f"s{number}", {**MONEY, "name": f"M{number}", "doc": "x" * 9_000})
    references = [reference(f"s{number}", name=f"shop.M{number}") for number in range(3)]
    assert registry.register("two", order("shop.M0"), references=references[:2])["version"] == 1
    assert registry.try_register("three", order("shop.M0"), references=references).error == (
        422,
        42201,
        "Invalid schema of type AVRO, details: The schemas that are referred to have more than 20000 characters",
    )


def test_reference_is_looked_for_only_in_contexts_that_have_its_subject(registry: MemoryRegistry) -> None:
    for number in range(50):
        registry.register(f":.c{number}:other", MONEY)
    registry.register(":.c7:money", MONEY)
    registry.register(":.c5:money", MONEY)
    assert registry.state.contexts_with("money") == [".c5", ".c7"]
    assert registry.get("/subjects/money/versions/1")["subject"] == ":.c5:money"
    for permanent in ("false", "true"):
        registry.request("DELETE", f"/subjects/:.c5:money?permanent={permanent}")
    assert registry.state.contexts_with("money") == [".c7"]
    assert registry.get("/subjects/money/versions/1")["subject"] == ":.c7:money"


def test_references_are_returned_with_their_context_on_request(registry: MemoryRegistry) -> None:
    registry.register(":.eu:money", MONEY)
    registry.register(":.eu:orders", order(), references=[reference()])
    for target in ("/subjects/:.eu:orders/versions/1", "/schemas/ids/2"):
        context = "subject=:.eu:"
        assert registry.get(f"{target}?{context}")["references"] == [reference()]
        qualified = registry.get(f"{target}?{context}&referenceFormat=qualified")["references"]
        assert qualified == [reference(":.eu:money")]
