"""Permissions by a file, as Karapace has them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from kaspar.base.errors import InvalidSetting
from kaspar.registry.authorization import Operation, PermissionsFile
from kaspar.web.identity import CALLER, Caller, Scheme
from tests.unit.registry.memory import MemoryRegistry, Response

STRING, INT = '"string"', '"int"'

PERMISSIONS = {
    "users": [{"username": "admin", "algorithm": "scrypt", "salt": "s", "password_hash": "aGFzaA=="}],
    "permissions": [
        {"username": "admin", "operation": "Write", "resource": ".*"},
        {"username": "aladdin", "operation": "Write", "resource": "Subject:cave.*"},
        {"username": "reader", "operation": "Read", "resource": "Subject:carpet.*"},
        {"username": "operator", "operation": "Read", "resource": "Config:"},
        {"username": "keeper", "operation": "Write", "resource": "Subject::\\.x:$"},
    ],
}


class LoggedIn:
    """What the server does before the application: says who calls."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.user: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.user is not None:
            scope[CALLER] = Caller(self.user, Scheme.BASIC, "secret")
        await self._app(scope, receive, send)


class GuardedRegistry:
    def __init__(self, file: Path) -> None:
        permissions = PermissionsFile(file)
        permissions.load()
        self._registry = MemoryRegistry(authorizer=permissions)
        transport: Any = self._registry.http._transport
        self._login = transport.app = LoggedIn(transport.app)

    def close(self) -> None:
        self._registry.__exit__(None, None, None)

    def request(self, user: str | None, method: str, target: str, body: Any = None) -> Response:
        self._login.user = user
        return self._registry.request(method, target, body)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedRegistry]:
    file = tmp_path / "authfile.json"
    file.write_text(json.dumps(PERMISSIONS))
    registry = GuardedRegistry(file)
    try:
        for subject, schema in [("cave", STRING), ("carpet", INT)]:
            assert registry.request("admin", "POST", f"/subjects/{subject}/versions", {"schema": schema}).status == 200
        yield registry
    finally:
        registry.close()


CASES = [
    (None, "GET", "/subjects", None, 401),
    (None, "POST", "/subjects/cave/versions", {"schema": STRING}, 401),
    ("stranger", "GET", "/subjects/cave/versions", None, 403),
    ("aladdin", "GET", "/subjects/cave/versions", None, 200),
    ("aladdin", "POST", "/subjects/cave-2/versions", {"schema": STRING}, 200),
    ("aladdin", "GET", "/subjects/carpet/versions", None, 403),
    ("aladdin", "PUT", "/config/cave", {"compatibility": "NONE"}, 200),
    ("aladdin", "PUT", "/config", {"compatibility": "NONE"}, 403),
    ("aladdin", "PUT", "/mode/cave", {"mode": "READONLY"}, 200),
    ("reader", "GET", "/subjects/carpet/versions/latest", None, 200),
    ("reader", "POST", "/subjects/carpet/versions", {"schema": INT}, 403),
    ("reader", "DELETE", "/subjects/carpet", None, 403),
    ("reader", "POST", "/compatibility/subjects/carpet/versions", {"schema": INT}, 200),
    ("reader", "POST", "/compatibility/subjects/cave/versions", {"schema": INT}, 403),
    ("reader", "GET", "/schemas/types", None, 200),
    ("operator", "GET", "/config", None, 200),
    ("operator", "GET", "/mode", None, 200),
    ("operator", "PUT", "/mode", {"mode": "READONLY"}, 403),
    ("admin", "PUT", "/config", {"compatibility": "NONE"}, 200),
    ("admin", "DELETE", "/subjects/cave", None, 200),
]


@pytest.mark.parametrize(("user", "method", "target", "body", "status"), CASES)
def test_permission_is_needed(
    guarded: GuardedRegistry, user: str | None, method: str, target: str, body: Any, status: int
) -> None:
    response = guarded.request(user, method, target, body)
    assert response.status == status, response.text
    if status == 401:
        assert response.headers["www-authenticate"].startswith("Basic")


def test_lists_have_only_what_may_be_read(guarded: GuardedRegistry) -> None:
    assert guarded.request("admin", "GET", "/subjects").json == ["carpet", "cave"]
    assert guarded.request("aladdin", "GET", "/subjects").json == ["cave"]
    assert [each["subject"] for each in guarded.request("reader", "GET", "/schemas").json] == ["carpet"]
    assert guarded.request("reader", "GET", "/schemas/ids/1/subjects").json == []


def test_schema_by_id_needs_a_subject_that_may_be_read(guarded: GuardedRegistry) -> None:
    assert guarded.request("aladdin", "GET", "/schemas/ids/1").status == 200
    assert guarded.request("aladdin", "GET", "/schemas/ids/2").error == (404, 40403, "Schema 2 not found")
    guid = guarded.request("admin", "GET", "/schemas/ids/2").json["guid"]
    assert guarded.request("aladdin", "GET", f"/schemas/guids/{guid}").status == 404


def test_context_does_not_get_around_permissions(guarded: GuardedRegistry) -> None:
    """An unqualified subject is looked for in all contexts, and those need permission, too."""
    body = {"schema": STRING}
    assert guarded.request("admin", "POST", "/subjects/:.x:cave-hidden/versions", body).status == 200
    assert guarded.request("aladdin", "GET", "/subjects/cave-hidden/versions/1").status == 404
    assert guarded.request("aladdin", "POST", "/subjects/cave-hidden", body).status == 404
    assert guarded.request("aladdin", "GET", "/contexts/x/subjects/cave-hidden/versions/1").status == 403


def test_write_includes_read_but_not_the_other_way_round(tmp_path: Path) -> None:
    file = tmp_path / "authfile.json"
    file.write_text(json.dumps(PERMISSIONS))
    permissions = PermissionsFile(file)
    permissions.load()
    assert permissions.allows("aladdin", Operation.READ, "Subject:cave")
    assert permissions.allows("reader", Operation.READ, "Subject:carpet-1")
    assert not permissions.allows("reader", Operation.WRITE, "Subject:carpet-1")
    assert not permissions.allows(None, Operation.READ, "Subject:carpet-1")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "{}",
        '{"permissions": [{}]}',
        '{"permissions": [{"username": "a", "operation": "Own", "resource": ""}]}',
        '{"permissions": [{"username": "a", "operation": "Read", "resource": "("}]}',
    ],
)
def test_unusable_file_is_refused_and_leaves_the_last_one_in_force(tmp_path: Path, content: str) -> None:
    file = tmp_path / "authfile.json"
    file.write_text(json.dumps(PERMISSIONS))
    permissions = PermissionsFile(file)
    permissions.load()
    file.write_text(content)
    with pytest.raises(InvalidSetting, match=r"authfile\.json"):
        permissions.load()
    assert permissions.allows("admin", Operation.WRITE, "Config:")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read"):
        PermissionsFile(tmp_path / "nothing").load()


def test_schema_may_only_refer_to_what_its_author_may_read(guarded: GuardedRegistry) -> None:
    """The resolved form of a schema would show it."""
    guarded.request(
        "admin", "POST", "/subjects/secret/versions", {"schema": '{"type":"enum","name":"S","symbols":["A"]}'}
    )
    body = {
        "schema": '{"type":"record","name":"R","fields":[{"name":"s","type":"S"}]}',
        "references": [{"name": "S", "subject": "secret", "version": 1}],
    }
    for target in ("/subjects/cave-two/versions", "/subjects/cave-two", "/compatibility/subjects/cave-two/versions"):
        assert guarded.request("aladdin", "POST", target, body).status == 403
    assert guarded.request("admin", "POST", "/subjects/cave-two/versions", body).status == 200


def test_alias_does_not_get_around_permissions(guarded: GuardedRegistry) -> None:
    """Schemas are those of the subject that the alias stands for; config and mode are those of the alias itself."""
    assert guarded.request("admin", "PUT", "/config/carpet-alias", {"alias": "cave"}).status == 200
    changes = [("config", {"alias": "carpet", "compatibility": "NONE"}), ("mode", {"mode": "READONLY"})]
    for setting, body in changes:
        for method in ("GET", "PUT", "DELETE"):
            response = guarded.request("aladdin", method, f"/{setting}/carpet-alias", body if method == "PUT" else None)
            assert response.status == 403, (method, setting, response.text)
    assert guarded.request("aladdin", "GET", "/subjects/carpet-alias/versions").status == 200
    assert guarded.request("reader", "GET", "/subjects/carpet-alias/versions").status == 403
    assert guarded.request("reader", "POST", "/compatibility/subjects/carpet-alias/versions", {}).status == 403
    assert guarded.request("reader", "GET", "/config/carpet-alias").json == {"alias": "cave"}


def test_owner_of_an_alias_manages_it_without_rights_on_its_target(guarded: GuardedRegistry) -> None:
    assert guarded.request("aladdin", "PUT", "/config/cave-alias", {"alias": "carpet"}).status == 200
    assert guarded.request("aladdin", "GET", "/subjects/cave-alias/versions").status == 403
    assert guarded.request("aladdin", "PUT", "/mode/cave-alias", {"mode": "READWRITE"}).status == 200
    assert guarded.request("aladdin", "DELETE", "/config/cave-alias").status == 200


def test_ids_are_only_those_of_subjects_that_may_be_read(guarded: GuardedRegistry) -> None:
    money = {"schema": '{"type":"enum","name":"S","symbols":["A"]}'}
    guarded.request("admin", "POST", "/subjects/cave-money/versions", money)
    schema = '{"type":"record","name":"R","fields":[{"name":"s","type":"S"}]}'
    body = {"schema": schema, "references": [{"name": "S", "subject": "cave-money", "version": 1}]}
    assert guarded.request("admin", "POST", "/subjects/carpet-two/versions", body).json["id"] == 4
    referenced_by = "/subjects/cave-money/versions/1/referencedby"
    assert guarded.request("admin", "GET", referenced_by).json == [4]
    assert guarded.request("aladdin", "GET", referenced_by).json == []
    guid = guarded.request("admin", "GET", "/schemas/ids/4").json["guid"]
    assert guarded.request("reader", "GET", f"/schemas/guids/{guid}/ids").json == [{"context": ".", "id": 4}]
    assert guarded.request("aladdin", "GET", f"/schemas/guids/{guid}/ids").error[1] == 40403


def test_recursive_deletion_of_modes_needs_write_on_their_subjects(guarded: GuardedRegistry) -> None:
    for subject in (":.x:", ":.x:a"):
        assert guarded.request("admin", "PUT", f"/mode/{subject}", {"mode": "READONLY"}).status == 200
    assert guarded.request("keeper", "DELETE", "/mode/:.x:?recursive=true").status == 403
    assert guarded.request("keeper", "DELETE", "/mode/:.x:").status == 200
    assert guarded.request("admin", "GET", "/mode/:.x:a").json == {"mode": "READONLY"}
