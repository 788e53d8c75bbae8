"""What the monitor sees is for callers who may describe the cluster, as the brokers' ACLs say."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.clock import SystemClock
from kaspar.client.admin.acls import create_acls
from kaspar.client.admin.session import Admin
from kaspar.monitor.http import permission
from kaspar.monitor.running import MonitorServer
from kaspar.testing import Broker
from kaspar.web.host_thread import HostThread
from tests.peers.observed import wait_until
from tests.peers.sasl_ssl import AUTHORIZER
from tests.peers.wire import free_port

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "mallory": "of-the-monitor-alone"}
PAGES = ("/v1/rates", "/v1/findings", "/v1/cluster", "/v1/groups", "/v3/kafka", "/v3/kafka/local/topic", "/metrics")


class Clock(SystemClock):
    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_port() -> int:
    return free_port()


@pytest.fixture
def url(tmp_path: Path, clock: Clock, open_port: int) -> Iterator[str]:
    sasl_port = free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    overrides = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_admin="{PASSWORDS["admin"]}" '
        f'user_alice="{PASSWORDS["alice"]}";',
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:admin",
    }
    (tmp_path / "users").write_text("".join(f"{name}:{password}\n" for name, password in PASSWORDS.items()))
    values = {
        "listeners": "http://127.0.0.1:0",
        "bootstrap.servers": f"127.0.0.1:{sasl_port}",
        "client.security.protocol": "SASL_PLAINTEXT",
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.jaas.config": f'{PLAIN} username="admin" password="{PASSWORDS["admin"]}";',
        "authentication.method": "BASIC",
        "kaspar.http.credentials.file": str(tmp_path / "users"),
        "kaspar.propagate.identity": "true",
    }
    with Broker(process=True, overrides=overrides):
        server = MonitorServer(values, clock=clock)
        running = HostThread([server])
        running.start()
        try:
            yield server.listeners[0]
        finally:
            running.stop()


def test_only_who_may_describe_the_cluster_sees_what_the_monitor_sees(url: str, clock: Clock, open_port: int) -> None:
    def status(path: str, name: str) -> int:
        return httpx.get(url + path, auth=(name, PASSWORDS[name]), timeout=30).status_code

    assert {status(path, "admin") for path in PAGES} == {200}
    assert {status(path, "alice") for path in PAGES} == {403}
    assert {status(path, "mallory") for path in PAGES} == {403}, "the brokers do not know this password"
    assert status("/burrow/admin", "alice") == 200, "a probe sees nothing of the cluster"
    forgotten = httpx.delete(f"{url}/v3/kafka/local/consumer/g", auth=("alice", PASSWORDS["alice"]))
    assert (forgotten.status_code, forgotten.json()["error"]) == (403, True)
    assert "needs Describe permission on the cluster" in forgotten.json()["message"]

    grant = Acl(
        ResourceType.CLUSTER,
        "kafka-cluster",
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    with Admin(f"127.0.0.1:{open_port}") as admin:
        assert create_acls(admin, [grant]) == {grant: None}
    wait_until(lambda: status("/v1/rates", "alice") == 200, "the ACL counts at the next request")


def test_a_caller_is_asked_about_again_after_a_while(url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(permission, "require_cluster", lambda *arguments: asked.append(arguments))

    def get() -> int:
        return httpx.get(f"{url}/v1/groups", auth=("alice", PASSWORDS["alice"]), timeout=30).status_code

    assert [get(), get(), len(asked)] == [200, 200, 1]
    clock.ahead_s = permission.REMEMBERED_S + 1
    assert [get(), len(asked)] == [200, 2]
