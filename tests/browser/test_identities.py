"""Two people at one console: each sees and does what the broker's ACLs permit, and the audit log has who did what."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.client.admin.acls import create_acls
from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.client.admin.session import raise_first
from kaspar.supervisor.ports import free_ports
from tests.browser.conftest import NewPage, Problems
from tests.browser.console import Console, running_console
from tests.peers.observed import wait_until
from tests.peers.sasl_ssl import AUTHORIZER

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Console, Path]]:
    """Its console, whose audit log is that file. Alice may describe the topic `hers` and nothing else."""
    folder = tmp_path_factory.mktemp("secured")
    ports = free_ports()
    open_port, sasl_port = next(ports), next(ports)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    (folder / "users").write_text("".join(f"{name}:{password}\n" for name, password in PASSWORDS.items()))
    overrides = {
        "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:admin",
    }
    settings = {
        "bootstrap.servers": f"127.0.0.1:{sasl_port}",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.jaas.config": f'{PLAIN} username="admin" password="{PASSWORDS["admin"]}";',
        "authentication.method": "BASIC",
        "kaspar.http.credentials.file": str(folder / "users"),
        "kaspar.propagate.identity": "true",
        "kaspar.console.audit.file": str(folder / "audit.log"),
    }
    with running_console(settings=settings, overrides=overrides) as console:
        with console.admin() as admin:
            raise_first(create_topics(admin, [NewTopic("hers", 1, 1), NewTopic("secret", 1, 1)]).values())
            hers = (ResourceType.TOPIC, "hers", PatternType.LITERAL, "User:alice", "*")
            create_acls(admin, [Acl(*hers, AclOperation.DESCRIBE, AclPermissionType.ALLOW)])
        yield console, folder / "audit.log"


def _page(new_page: NewPage, name: str) -> Page:
    return new_page(http_credentials={"username": name, "password": PASSWORDS[name]})


def test_each_person_sees_what_they_may_describe(
    new_page: NewPage, problems: Problems, secured: tuple[Console, Path]
) -> None:
    console, _ = secured
    problems.expected |= {401, 403}
    alice, admin = _page(new_page, "alice"), _page(new_page, "admin")
    console.open(admin, "#/topics")
    expect(admin.locator("tbody tr[data-row]")).to_have_count(2)
    console.open(alice, "#/topics")
    expect(alice.locator("tbody tr[data-row]")).to_have_count(1)
    expect(alice.get_by_role("link", name="hers")).to_be_visible()
    console.open(alice, "#/")
    expect(alice.locator("a.figure", has_text="Topics")).to_contain_text("1")
    expect(
        alice.get_by_text("The user alice is not permitted to do this. Seeing the rates of the cluster")
    ).to_be_visible()
    console.open(alice, "#/topics/hers?tab=settings")
    expect(alice.get_by_text("The user alice is not permitted to do this.")).to_be_visible()
    expect(alice.get_by_role("button", name="Delete topic")).to_be_disabled()


def test_changes_are_in_the_audit_log_whether_they_were_made_or_refused(
    new_page: NewPage, problems: Problems, secured: tuple[Console, Path]
) -> None:
    console, audit = secured
    problems.expected |= {401}
    alice, admin = _page(new_page, "alice"), _page(new_page, "admin")
    for page in (alice, admin):
        console.open(page, "#/topics")
    headers = {"X-Kaspar-Console": "1"}
    refused = alice.request.delete(f"{console.url}/api/topics/secret", headers=headers)
    assert refused.status == 403
    assert refused.json()["message"].startswith("The user alice is not permitted to do this.")
    assert admin.request.delete(f"{console.url}/api/topics/secret", headers=headers).status == 204
    assert admin.request.delete(f"{console.url}/api/topics/hers").status == 403, "without the header"

    def lines() -> list[dict[str, str]]:
        return [json.loads(line) for line in audit.read_text().splitlines()] if audit.exists() else []

    wait_until(lambda: len(lines()) == 2, "both changes are in the audit log")
    told = [{name: line.get(name) for name in ("caller", "action", "resource", "outcome")} for line in lines()]
    assert told == [
        {"caller": "alice", "action": "delete topic", "resource": "topic secret", "outcome": "refused"},
        {"caller": "admin", "action": "delete topic", "resource": "topic secret", "outcome": "done"},
    ]
