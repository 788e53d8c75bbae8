"""Every endpoint and every error code, over HTTP: prepare a registry, send one request, compare the response.

The table has to name every endpoint that is declared and every code that an endpoint declares.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kaspar.registry.api.openapi import ERRORS
from kaspar.registry.api.routing import ALL_ENDPOINTS
from kaspar.registry.interfaces import RecordTooLarge, StoreFailed, StoreTimeout
from kaspar.registry.options import RegistryOptions
from tests.unit.registry.memory import DirectForwarder, FixedLeadership, MemoryRegistry, avro_record

STRING, INT = '"string"', '"int"'
STRING_GUID = "095d71cf-1255-6b9d-5e33-0ad575b3df5d"
UNKNOWN_GUID = "00000000-0000-0000-0000-000000000000"
NO_SUBJECT = "Subject 'nothing' not found."

Preparation = Callable[[MemoryRegistry], None]


def nothing(registry: MemoryRegistry) -> None:
    pass


def one_schema(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)


def two_versions(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))
    registry.register("orders", avro_record("a", optional=["b"]))


def one_record(registry: MemoryRegistry) -> None:
    registry.register("orders", avro_record("a"))


def record_that_is_read_only(registry: MemoryRegistry) -> None:
    one_record(registry)
    assert registry.request("PUT", "/mode/orders", {"mode": "READONLY"}).status == 200


def soft_deleted_version(registry: MemoryRegistry) -> None:
    two_versions(registry)
    assert registry.request("DELETE", "/subjects/orders/versions/1").status == 200


def soft_deleted_subject(registry: MemoryRegistry) -> None:
    one_schema(registry)
    assert registry.request("DELETE", "/subjects/orders").status == 200


def with_metadata(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING, metadata={"properties": {"owner": "a", "tier": "1"}})
    registry.register("orders", STRING, metadata={"properties": {"owner": "b"}})


def referenced(registry: MemoryRegistry) -> None:
    registry.register("money", {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]})
    fields = [{"name": "price", "type": "Money"}]
    registry.register(
        "orders",
        {"type": "record", "name": "Order", "fields": fields},
        references=[{"name": "Money", "subject": "money", "version": 1}],
    )


def config_of_subject(registry: MemoryRegistry) -> None:
    assert registry.request("PUT", "/config/orders", {"compatibility": "FULL"}).status == 200


def mode_of_subject(registry: MemoryRegistry) -> None:
    assert registry.request("PUT", "/mode/orders", {"mode": "READONLY"}).status == 200


def read_only(registry: MemoryRegistry) -> None:
    soft_deleted_subject(registry)
    registry.register("others", STRING)
    config_of_subject(registry)
    assert registry.request("PUT", "/mode", {"mode": "READONLY"}).status == 200


def in_context(registry: MemoryRegistry) -> None:
    registry.register(":.eu:orders", STRING)


def empty_context(registry: MemoryRegistry) -> None:
    in_context(registry)
    assert registry.request("DELETE", "/subjects/:.eu:orders").status == 200
    assert registry.request("DELETE", "/subjects/:.eu:orders?permanent=true").status == 200


def too_large(registry: MemoryRegistry) -> None:
    registry.log.failure = RecordTooLarge("too large")


def record_that_is_too_large(registry: MemoryRegistry) -> None:
    one_record(registry)
    too_large(registry)


def incompatible_versions(registry: MemoryRegistry) -> None:
    registry.register("orders", STRING)
    registry.request("PUT", "/config/orders", {"compatibility": "NONE"})
    registry.register("orders", INT)
    assert registry.request("DELETE", "/config/orders").status == 200


@dataclass(frozen=True)
class Case:
    endpoint: str
    """The method and path of the declaration."""
    target: str
    prepare: Preparation
    status: int
    response: Any
    body: Any = None
    code: int | None = field(default=None)

    @property
    def method(self) -> str:
        return self.endpoint.split()[0]


def success(endpoint: str, target: str, prepare: Preparation, response: Any, body: Any = None) -> Case:
    return Case(endpoint, target, prepare, 200, response, body)


def refused(endpoint: str, target: str, prepare: Preparation, code: int, message: str, body: Any = None) -> Case:
    return Case(endpoint, target, prepare, int(str(code)[:3]), {"error_code": code, "message": message}, body, code)


STORED = {"subject": "orders", "version": 1, "id": 1, "guid": STRING_GUID, "schema": STRING, "ts": 1_000}
BY_ID = {"guid": STRING_GUID, "schema": STRING}
LEVELS = "none, backward, forward, full, backward_transitive, forward_transitive, and full_transitive"
NO_LEVEL = f"Invalid compatibility level. Valid values are {LEVELS}"
NO_MODE = "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD."
NO_VERSION = (
    "The specified version '{}' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"'
)
READ_ONLY = "Subject {} in context  is in read-only mode"
REFERENCED = "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=money,version=1}."
BAD_RULES = {"domainRules": [{"name": "r", "type": "CEL", "mode": "UPGRADE"}]}
BAD_RULES_MESSAGE = "Invalid rule set: Domain rules can only be WRITE, READ, WRITEREAD"
INVALID_AVRO = "Invalid schema type XML"
CONTROL = "The specified subject 'a\n' is not a valid."

GET_VERSION = "GET /subjects/{subject}/versions/{version}"
GET_TEXT = "GET /subjects/{subject}/versions/{version}/schema"
REFERENCED_BY = "GET /subjects/{subject}/versions/{version}/referencedby"
DELETE_VERSION = "DELETE /subjects/{subject}/versions/{version}"
DELETE_SUBJECT = "DELETE /subjects/{subject}"
REGISTER = "POST /subjects/{subject}/versions"
LOOK_UP = "POST /subjects/{subject}"
TAGS = "POST /subjects/{subject}/versions/{version}/tags"
ADD_TAG = {"tagsToAdd": [{"schemaEntity": {"entityPath": "Order.a", "entityType": "SR_FIELD"}, "tags": ["PII"]}]}
TAGGED = '{"type":"record","name":"Order","fields":[{"name":"a","type":"string","confluent:tags":["PII"]}]}'
COMPATIBLE = "POST /compatibility/subjects/{subject}/versions"
COMPATIBLE_ONE = "POST /compatibility/subjects/{subject}/versions/{version}"

CASES = [
    success("GET /", "/", nothing, {}),
    success("POST /", "/", nothing, {}),
    # /schemas
    success("GET /schemas", "/schemas", one_schema, [STORED]),
    success("GET /schemas", "/schemas?subjectPrefix=ord", one_schema, [STORED]),
    success("GET /schemas", "/schemas?subjectPrefix=x", one_schema, []),
    success("GET /schemas", "/schemas?latestOnly=true&subjectPrefix=orders&offset=1", two_versions, []),
    success("GET /schemas", "/schemas?deleted=true", soft_deleted_subject, [{**STORED, "deleted": True}]),
    success("GET /schemas", "/schemas?ruleType=CEL", one_schema, []),
    success("GET /schemas/types", "/schemas/types", nothing, ["JSON", "PROTOBUF", "AVRO"]),
    success("GET /schemas/ids/{id}", "/schemas/ids/1", one_schema, BY_ID),
    success("GET /schemas/ids/{id}", "/schemas/ids/1", soft_deleted_subject, BY_ID),
    success("GET /schemas/ids/{id}", "/schemas/ids/1?fetchMaxId=true", one_schema, {**BY_ID, "maxId": 1}),
    success(
        "GET /schemas/ids/{id}",
        "/schemas/ids/1?subject=orders",
        one_schema,
        {"subject": "orders", "version": 1, **BY_ID},
    ),
    refused("GET /schemas/ids/{id}", "/schemas/ids/9", one_schema, 40403, "Schema 9 not found"),
    success("GET /schemas/ids/{id}/schema", "/schemas/ids/1/schema", one_schema, "string"),
    refused("GET /schemas/ids/{id}/schema", "/schemas/ids/9/schema", nothing, 40403, "Schema 9 not found"),
    success("GET /schemas/ids/{id}/subjects", "/schemas/ids/1/subjects", one_schema, ["orders"]),
    success("GET /schemas/ids/{id}/subjects", "/schemas/ids/1/subjects", soft_deleted_subject, []),
    success("GET /schemas/ids/{id}/subjects", "/schemas/ids/1/subjects?deleted=true", soft_deleted_subject, ["orders"]),
    refused("GET /schemas/ids/{id}/subjects", "/schemas/ids/9/subjects", nothing, 40403, "Schema 9 not found"),
    success(
        "GET /schemas/ids/{id}/versions",
        "/schemas/ids/1/versions",
        one_schema,
        [{"subject": "orders", "version": 1}],
    ),
    refused("GET /schemas/ids/{id}/versions", "/schemas/ids/9/versions", nothing, 40403, "Schema 9 not found"),
    success("GET /schemas/guids/{guid}", f"/schemas/guids/{STRING_GUID}", one_schema, BY_ID),
    refused(
        "GET /schemas/guids/{guid}",
        f"/schemas/guids/{UNKNOWN_GUID}",
        one_schema,
        40403,
        f"Schema {UNKNOWN_GUID} not found",
    ),
    success(
        "GET /schemas/guids/{guid}/ids",
        f"/schemas/guids/{STRING_GUID}/ids",
        one_schema,
        [{"context": ".", "id": 1}],
    ),
    refused("GET /schemas/guids/{guid}/ids", "/schemas/guids/x/ids", nothing, 40403, "Schema x not found"),
    # /subjects
    success("GET /subjects", "/subjects", one_schema, ["orders"]),
    success("GET /subjects", "/subjects?subjectPrefix=x", one_schema, []),
    success("GET /subjects", "/subjects", soft_deleted_subject, []),
    success("GET /subjects", "/subjects?deleted=true", soft_deleted_subject, ["orders"]),
    success("GET /subjects", "/subjects?deletedOnly=true", one_schema, []),
    success("GET /subjects", "/subjects?offset=1", one_schema, []),
    success(LOOK_UP, "/subjects/orders", one_schema, STORED, {"schema": STRING}),
    success(
        LOOK_UP, "/subjects/orders?deleted=true", soft_deleted_subject, {**STORED, "deleted": True}, {"schema": STRING}
    ),
    refused(LOOK_UP, "/subjects/nothing", one_schema, 40401, NO_SUBJECT, {"schema": STRING}),
    refused(LOOK_UP, "/subjects/orders", one_schema, 40403, "Schema not found", {"schema": INT}),
    refused(LOOK_UP, "/subjects/orders", one_schema, 42201, INVALID_AVRO, {"schema": STRING, "schemaType": "XML"}),
    success(DELETE_SUBJECT, "/subjects/orders", two_versions, [1, 2]),
    success(DELETE_SUBJECT, "/subjects/orders?permanent=true", soft_deleted_subject, [1]),
    refused(DELETE_SUBJECT, "/subjects/nothing", one_schema, 40401, NO_SUBJECT),
    refused(
        DELETE_SUBJECT,
        "/subjects/orders",
        soft_deleted_subject,
        40404,
        "Subject 'orders' was soft deleted.Set permanent=true to delete permanently",
    ),
    refused(
        DELETE_SUBJECT,
        "/subjects/orders?permanent=true",
        one_schema,
        40405,
        "Subject 'orders' was not deleted first before being permanently deleted",
    ),
    refused(DELETE_SUBJECT, "/subjects/others", read_only, 42205, READ_ONLY.format("others")),
    refused(DELETE_SUBJECT, "/subjects/money", referenced, 42206, REFERENCED),
    success(
        "GET /subjects/{subject}/metadata",
        "/subjects/orders/metadata?key=owner&value=a&key=tier&value=1",
        with_metadata,
        {
            "subject": "orders",
            "version": 1,
            "id": 1,
            "guid": "9d5352cf-624a-5ab9-d501-3a9f272b9132",
            "metadata": {"properties": {"owner": "a", "tier": "1"}},
            "schema": STRING,
            "ts": 1_000,
        },
    ),
    refused(
        "GET /subjects/{subject}/metadata",
        "/subjects/orders/metadata?key=owner&value=c",
        with_metadata,
        40403,
        "Schema not found",
    ),
    refused("GET /subjects/{subject}/metadata", "/subjects/nothing/metadata", nothing, 40401, NO_SUBJECT),
    # /subjects/{subject}/versions
    success("GET /subjects/{subject}/versions", "/subjects/orders/versions", two_versions, [1, 2]),
    success("GET /subjects/{subject}/versions", "/subjects/orders/versions", soft_deleted_version, [2]),
    success("GET /subjects/{subject}/versions", "/subjects/orders/versions?deleted=true", soft_deleted_version, [1, 2]),
    success(
        "GET /subjects/{subject}/versions", "/subjects/orders/versions?deletedOnly=true", soft_deleted_version, [1]
    ),
    success(
        "GET /subjects/{subject}/versions",
        "/subjects/orders/versions?deletedAsNegative=true",
        soft_deleted_version,
        [-1, 2],
    ),
    success("GET /subjects/{subject}/versions", "/subjects/orders/versions?offset=1&limit=1", two_versions, [2]),
    refused("GET /subjects/{subject}/versions", "/subjects/nothing/versions", nothing, 40401, NO_SUBJECT),
    success(
        REGISTER,
        "/subjects/orders/versions",
        nothing,
        {"id": 1, "version": 1, "guid": STRING_GUID, "schema": '{"type": "string"}'},
        {"schema": '{"type": "string"}'},
    ),
    refused(
        REGISTER,
        "/subjects/orders/versions",
        one_schema,
        409,
        'Schema being registered is incompatible with an earlier schema for subject "orders", details: '
        "[{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not match "
        "with the old schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}, "
        "{oldSchemaVersion: 1}, {oldSchema: '\"string\"'}, {validateFields: 'false', compatibility: 'BACKWARD'}]",
        {"schema": INT},
    ),
    refused(REGISTER, "/subjects/orders/versions", nothing, 42201, "Empty schema", {}),
    refused(
        REGISTER,
        "/subjects/orders/versions",
        nothing,
        42205,
        "Subject orders in context  is not in import mode",
        {"schema": STRING, "id": 7},
    ),
    refused(REGISTER, "/subjects/a%0A/versions", nothing, 42208, CONTROL, {"schema": STRING}),
    refused(
        REGISTER,
        "/subjects/orders/versions",
        too_large,
        42209,
        "Register operation failed because schema is too large",
        {"schema": STRING},
    ),
    refused(
        REGISTER,
        "/subjects/orders/versions",
        nothing,
        42210,
        BAD_RULES_MESSAGE,
        {"schema": STRING, "ruleSet": BAD_RULES},
    ),
    success(GET_VERSION, "/subjects/orders/versions/1", one_schema, STORED),
    success(GET_VERSION, "/subjects/orders/versions/latest", one_schema, STORED),
    success(GET_VERSION, "/subjects/orders/versions/-1", one_schema, STORED),
    success(GET_VERSION, "/subjects/orders/versions/1?deleted=true", soft_deleted_subject, {**STORED, "deleted": True}),
    refused(GET_VERSION, "/subjects/nothing/versions/1", nothing, 40401, NO_SUBJECT),
    refused(GET_VERSION, "/subjects/orders/versions/7", one_schema, 40402, "Version 7 not found."),
    refused(GET_VERSION, "/subjects/orders/versions/1", soft_deleted_version, 40402, "Version 1 not found."),
    refused(GET_VERSION, "/subjects/orders/versions/0", one_schema, 42202, NO_VERSION.format("0")),
    refused(GET_VERSION, "/subjects/orders/versions/x", one_schema, 42202, NO_VERSION.format("x")),
    refused(GET_VERSION, "/subjects/orders/versions/2147483648", nothing, 42202, NO_VERSION.format("2147483648")),
    success(GET_TEXT, "/subjects/orders/versions/latest/schema", one_schema, "string"),
    refused(GET_TEXT, "/subjects/nothing/versions/1/schema", nothing, 40401, NO_SUBJECT),
    refused(GET_TEXT, "/subjects/orders/versions/2/schema", one_schema, 40402, "Version 2 not found."),
    refused(GET_TEXT, "/subjects/orders/versions/-2/schema", one_schema, 42202, NO_VERSION.format("-2")),
    success(
        TAGS,
        "/subjects/orders/versions/latest/tags",
        one_record,
        {
            "id": 2,
            "version": 2,
            "guid": "c28dd364-cab1-3f64-a281-f543a5049019",
            "metadata": {"properties": {"confluent:version": "2"}},
            "schema": TAGGED,
        },
        ADD_TAG,
    ),
    refused(TAGS, "/subjects/nothing/versions/1/tags", nothing, 40401, NO_SUBJECT, ADD_TAG),
    refused(TAGS, "/subjects/orders/versions/2/tags", one_record, 40402, "Version 2 not found.", ADD_TAG),
    refused(
        TAGS,
        "/subjects/orders/versions/1/tags",
        one_schema,
        42201,
        "Invalid schema of type AVRO, details: No matching path 'Order.a' found in the schema",
        ADD_TAG,
    ),
    refused(
        TAGS,
        "/subjects/orders/versions/1/tags",
        incompatible_versions,
        409,
        'Schema being registered is incompatible with an earlier schema for subject "orders", details: '
        "[{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not match "
        "with the old schema', additionalInfo:'reader type: STRING not compatible with writer type: INT'}, "
        "{oldSchemaVersion: 2}, {oldSchema: '\"int\"'}, {validateFields: 'false', compatibility: 'BACKWARD'}]",
        {},
    ),
    refused(
        TAGS,
        "/subjects/orders/versions/1/tags",
        record_that_is_too_large,
        42209,
        "Register operation failed because schema is too large",
        ADD_TAG,
    ),
    refused(TAGS, "/subjects/orders/versions/x/tags", one_record, 42202, NO_VERSION.format("x"), ADD_TAG),
    refused(
        TAGS,
        "/subjects/orders/versions/1/tags",
        record_that_is_read_only,
        42205,
        READ_ONLY.format("orders"),
        ADD_TAG,
    ),
    refused(
        TAGS, "/subjects/orders/versions/1/tags", one_record, 42210, BAD_RULES_MESSAGE, {"rulesToMerge": BAD_RULES}
    ),
    success(REFERENCED_BY, "/subjects/money/versions/1/referencedby", referenced, [2]),
    success(REFERENCED_BY, "/subjects/orders/versions/1/referencedby", referenced, []),
    refused(REFERENCED_BY, "/subjects/nothing/versions/1/referencedby", nothing, 40401, NO_SUBJECT),
    refused(REFERENCED_BY, "/subjects/orders/versions/2/referencedby", one_schema, 40402, "Version 2 not found."),
    refused(REFERENCED_BY, "/subjects/orders/versions/x/referencedby", nothing, 42202, NO_VERSION.format("x")),
    success(DELETE_VERSION, "/subjects/orders/versions/latest", two_versions, 2),
    success(DELETE_VERSION, "/subjects/orders/versions/1?permanent=true", soft_deleted_version, 1),
    refused(DELETE_VERSION, "/subjects/nothing/versions/1", nothing, 40401, NO_SUBJECT),
    refused(DELETE_VERSION, "/subjects/orders/versions/9", one_schema, 40402, "Version 9 not found."),
    refused(
        DELETE_VERSION,
        "/subjects/orders/versions/1",
        soft_deleted_version,
        40406,
        "Subject 'orders' Version 1 was soft deleted.Set permanent=true to delete permanently",
    ),
    refused(
        DELETE_VERSION,
        "/subjects/orders/versions/1?permanent=true",
        one_schema,
        40407,
        "Subject 'orders' Version 1 was not deleted first before being permanently deleted",
    ),
    refused(DELETE_VERSION, "/subjects/orders/versions/0", one_schema, 42202, NO_VERSION.format("0")),
    refused(DELETE_VERSION, "/subjects/others/versions/1", read_only, 42205, READ_ONLY.format("others")),
    refused(DELETE_VERSION, "/subjects/money/versions/1", referenced, 42206, REFERENCED),
    # /compatibility
    success(
        COMPATIBLE, "/compatibility/subjects/orders/versions", one_schema, {"is_compatible": True}, {"schema": STRING}
    ),
    success(
        COMPATIBLE, "/compatibility/subjects/orders/versions", one_schema, {"is_compatible": False}, {"schema": INT}
    ),
    success(COMPATIBLE, "/compatibility/subjects/nothing/versions", nothing, {"is_compatible": True}, {"schema": INT}),
    refused(COMPATIBLE, "/compatibility/subjects/orders/versions", one_schema, 42201, "Empty schema", {"schema": " "}),
    success(
        COMPATIBLE_ONE,
        "/compatibility/subjects/orders/versions/latest",
        one_schema,
        {"is_compatible": True},
        {"schema": STRING},
    ),
    success(
        COMPATIBLE_ONE,
        "/compatibility/subjects/orders/versions/1?verbose=true",
        one_schema,
        {"is_compatible": False, "messages": ["Invalid schema type XML"]},
        {"schema": STRING, "schemaType": "XML"},
    ),
    success(
        COMPATIBLE_ONE,
        "/compatibility/subjects/nothing/versions/latest",
        nothing,
        {"is_compatible": True},
        {"schema": STRING},
    ),
    refused(
        COMPATIBLE_ONE,
        "/compatibility/subjects/orders/versions/9",
        one_schema,
        40402,
        "Version 9 not found.",
        {"schema": INT},
    ),
    refused(
        COMPATIBLE_ONE,
        "/compatibility/subjects/orders/versions/1",
        one_schema,
        42201,
        "Empty schema",
        {},
    ),
    refused(
        COMPATIBLE_ONE,
        "/compatibility/subjects/orders/versions/x",
        one_schema,
        42202,
        NO_VERSION.format("x"),
        {"schema": INT},
    ),
    # /config
    success("GET /config", "/config", nothing, {"compatibilityLevel": "BACKWARD"}),
    success("PUT /config", "/config", nothing, {"compatibility": "FULL"}, {"compatibility": "full"}),
    refused("PUT /config", "/config", nothing, 42203, NO_LEVEL, {"compatibility": "SOMETIMES"}),
    refused("PUT /config", "/config", read_only, 42205, READ_ONLY.format("null"), {"compatibility": "FULL"}),
    refused("PUT /config", "/config", nothing, 42210, BAD_RULES_MESSAGE, {"defaultRuleSet": BAD_RULES}),
    success("DELETE /config", "/config", nothing, {"compatibilityLevel": "BACKWARD"}),
    refused("DELETE /config", "/config", read_only, 42205, READ_ONLY.format("null")),
    success("GET /config/{subject}", "/config/orders", config_of_subject, {"compatibilityLevel": "FULL"}),
    success("GET /config/{subject}", "/config/x?defaultToGlobal=true", nothing, {"compatibilityLevel": "BACKWARD"}),
    refused(
        "GET /config/{subject}",
        "/config/nothing",
        nothing,
        40408,
        "Subject 'nothing' does not have subject-level compatibility configured",
    ),
    success("PUT /config/{subject}", "/config/orders", nothing, {"normalize": True}, {"normalize": True}),
    refused("PUT /config/{subject}", "/config/orders", nothing, 42203, NO_LEVEL, {"compatibility": "x"}),
    refused("PUT /config/{subject}", "/config/a", read_only, 42205, READ_ONLY.format("a"), {"compatibility": "FULL"}),
    refused("PUT /config/{subject}", "/config/a%0A", nothing, 42208, CONTROL, {"compatibility": "FULL"}),
    refused("PUT /config/{subject}", "/config/a", nothing, 42210, BAD_RULES_MESSAGE, {"overrideRuleSet": BAD_RULES}),
    success("DELETE /config/{subject}", "/config/orders", config_of_subject, {"compatibilityLevel": "FULL"}),
    refused("DELETE /config/{subject}", "/config/nothing", nothing, 40401, NO_SUBJECT),
    refused("DELETE /config/{subject}", "/config/orders", read_only, 42205, READ_ONLY.format("orders")),
    # /mode
    success("GET /mode", "/mode", nothing, {"mode": "READWRITE"}),
    success("PUT /mode", "/mode", nothing, {"mode": "IMPORT"}, {"mode": "import"}),
    refused("PUT /mode", "/mode", nothing, 42204, NO_MODE, {"mode": "SIDEWAYS"}),
    refused("PUT /mode", "/mode", one_schema, 42205, "Cannot import since found existing subjects", {"mode": "IMPORT"}),
    success("PUT /mode", "/mode?force=true", one_schema, {"mode": "IMPORT"}, {"mode": "IMPORT"}),
    success("DELETE /mode", "/mode", nothing, {"mode": "READWRITE"}),
    success("GET /mode/{subject}", "/mode/orders", mode_of_subject, {"mode": "READONLY"}),
    success("GET /mode/{subject}", "/mode/x?defaultToGlobal=true", nothing, {"mode": "READWRITE"}),
    refused(
        "GET /mode/{subject}",
        "/mode/nothing",
        nothing,
        40409,
        "Subject 'nothing' does not have subject-level mode configured",
    ),
    success("PUT /mode/{subject}", "/mode/orders", nothing, {"mode": "FORWARD"}, {"mode": "FORWARD"}),
    refused("PUT /mode/{subject}", "/mode/orders", nothing, 42204, NO_MODE, {}),
    refused(
        "PUT /mode/{subject}",
        "/mode/orders",
        one_schema,
        42205,
        "Cannot import since found existing subjects",
        {"mode": "IMPORT"},
    ),
    refused("PUT /mode/{subject}", "/mode/a%0A", nothing, 42208, CONTROL, {"mode": "READONLY"}),
    success("DELETE /mode/{subject}", "/mode/orders", mode_of_subject, {"mode": "READONLY"}),
    refused("DELETE /mode/{subject}", "/mode/nothing", nothing, 40401, NO_SUBJECT),
    # /contexts and the server
    success("GET /contexts", "/contexts", nothing, ["."]),
    success("GET /contexts", "/contexts", in_context, [".", ".eu"]),
    success("GET /contexts", "/contexts?offset=1&limit=5", in_context, [".eu"]),
    Case("DELETE /contexts/{context}", "/contexts/.eu", empty_context, 204, None),
    refused(
        "DELETE /contexts/{context}",
        "/contexts/.eu",
        in_context,
        42211,
        "The specified context ':.eu:' is not empty.",
    ),
    success(
        "GET /v1/metadata/id",
        "/v1/metadata/id",
        nothing,
        {
            "id": "",
            "scope": {"path": [], "clusters": {"kafka-cluster": "", "schema-registry-cluster": "schema-registry"}},
        },
    ),
    success(
        "GET /v1/metadata/version", "/v1/metadata/version", nothing, {"version": "8.1.0", "commitId": "kaspar-0.1.0"}
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.method}{case.target}-{case.code or case.status}")
def test_response_of_every_endpoint(registry: MemoryRegistry, case: Case) -> None:
    case.prepare(registry)
    response = registry.request(case.method, case.target, case.body)
    assert response.status == case.status, response.text
    assert (response.json if response.text else None) == case.response


def test_mode_of_a_registry_that_forbids_changes() -> None:
    with MemoryRegistry(options=RegistryOptions(mode_mutability=False)) as registry:
        for method, target in [("PUT", "/mode"), ("PUT", "/mode/a"), ("DELETE", "/mode")]:
            response = registry.request(method, target, {"mode": "READONLY"})
            assert response.error == (422, 42205, "Mode changes are not allowed")


def test_mode_of_a_subject_cannot_be_reset_where_changes_are_forbidden() -> None:
    with MemoryRegistry() as writable:
        mode_of_subject(writable)
    with MemoryRegistry(options=RegistryOptions(mode_mutability=False)) as registry:
        for key, value in writable.log.records:
            registry.state.replay(key, value, 0, 0)
        assert registry.request("DELETE", "/mode/orders").error == (422, 42205, "Mode changes are not allowed")


WRITES = [
    ("POST", "/subjects/orders/versions", {"schema": INT}, "Register operation timed out"),
    ("POST", "/subjects/orders/versions/1/tags", {}, "Register operation timed out"),
    ("DELETE", "/subjects/orders", None, "Delete Subject operation timed out"),
    ("DELETE", "/subjects/orders/versions/1", None, "Delete Schema Version operation timed out"),
    ("PUT", "/config", {"compatibility": "NONE"}, "Failed to update compatibility level"),
    ("PUT", "/config/orders", {"compatibility": "NONE"}, "Failed to update compatibility level"),
    ("DELETE", "/config", None, "Failed to delete compatibility level"),
    ("DELETE", "/config/orders", None, "Failed to delete compatibility level"),
    ("PUT", "/mode", {"mode": "READONLY"}, "Failed to update mode"),
    ("PUT", "/mode/orders", {"mode": "READONLY"}, "Failed to update mode"),
    ("DELETE", "/mode", None, "Failed to delete mode"),
    ("DELETE", "/mode/orders", None, "Failed to delete mode"),
    ("DELETE", "/contexts/.eu", None, "Delete context operation timed out"),
]


def written(registry: MemoryRegistry) -> None:
    """So that every write of the table has something to change."""
    one_schema(registry)
    empty_context(registry)
    for target, body in [("/config", {"compatibility": "NONE"}), ("/mode", {"mode": "READWRITE"})]:
        for place in (target, f"{target}/orders"):
            assert registry.request("PUT", place, body).status == 200


@pytest.mark.parametrize(("method", "target", "body", "message"), WRITES)
def test_write_that_is_not_read_back_in_time_is_50002(
    registry: MemoryRegistry, method: str, target: str, body: Any, message: str
) -> None:
    written(registry)
    registry.log.failure = StoreTimeout("no end in sight")
    assert registry.request(method, target, body).error == (500, 50002, message)


@pytest.mark.parametrize(("method", "target", "body", "_message"), WRITES)
def test_write_that_the_broker_refuses_is_50001(
    registry: MemoryRegistry, method: str, target: str, body: Any, _message: str
) -> None:
    written(registry)
    before = len(registry.log.records)
    registry.log.failure = StoreFailed("aborted")
    status, code, _ = registry.request(method, target, body).error
    assert (status, code) == (500, 50001)
    assert len(registry.log.records) == before


@pytest.mark.parametrize(("method", "target", "body", "_message"), WRITES)
def test_write_without_a_leader_is_50004(method: str, target: str, body: Any, _message: str) -> None:
    with MemoryRegistry(leadership=FixedLeadership(is_leader=False)) as registry:
        status, code, _ = registry.request(method, target, body).error
        assert (status, code) == (500, 50004)


@pytest.mark.parametrize(("method", "target", "body", "_message"), WRITES)
def test_write_that_does_not_reach_the_leader_is_50003(method: str, target: str, body: Any, _message: str) -> None:
    leadership = FixedLeadership(is_leader=False, leader_url="http://leader")
    with MemoryRegistry(leadership=leadership, forwarder=DirectForwarder(None)) as registry:
        status, code, message = registry.request(method, target, body).error
        assert (status, code) == (500, 50003)
        assert message.startswith("Error while forwarding")


def test_table_names_every_endpoint() -> None:
    declared = {f"{endpoint.method} {endpoint.path}" for endpoint in ALL_ENDPOINTS}
    assert {case.endpoint for case in CASES if case.code is None} == declared


def test_table_has_every_error_of_every_endpoint() -> None:
    """The errors of the log and of forwarding have tables of their own; so has a mode that cannot be changed."""
    declared = {
        (f"{endpoint.method} {endpoint.path}", code)
        for endpoint in ALL_ENDPOINTS
        for code in endpoint.errors
        if (endpoint.tag, endpoint.method, code) != ("Mode", "DELETE", 42205)
    }
    assert {(case.endpoint, case.code) for case in CASES if case.code is not None} == declared


def test_every_write_is_in_the_table_of_failures() -> None:
    with_failures = {(method, target) for method, target, _, _ in WRITES}
    assert len(with_failures) == sum(endpoint.writes is not None for endpoint in ALL_ENDPOINTS)


def test_every_error_is_described() -> None:
    assert {code for endpoint in ALL_ENDPOINTS for code in endpoint.errors} | {50001, 50002, 50003, 50004} == set(
        ERRORS
    )
