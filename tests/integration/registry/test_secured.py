"""A registry whose broker asks it to log in over TLS, and whose instances speak HTTPS with each other."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kaspar.security.certificates import CertificateAuthority
from tests.integration.registry.instances import HEADERS, QUICK_GROUPS, Registry, leader_of, record_schema, wait_until
from tests.peers.kaspar import KasparProcess
from tests.peers.wire import free_port

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    authority = CertificateAuthority.new()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    issued = authority.issue("server", hosts=["localhost", "127.0.0.1"])
    (tmp_path / "server.pem").write_bytes(issued.key_and_chain)
    return authority


@pytest.fixture
def secured_port(tmp_path: Path, authority: CertificateAuthority) -> Iterator[int]:
    port = free_port()
    broker = KasparProcess(tmp_path / "broker", overrides=QUICK_GROUPS)
    listeners = f"PLAINTEXT://127.0.0.1:{broker.port},SASL_SSL://127.0.0.1:{port}"
    broker.overrides |= {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{JAAS} user_registry="registry-secret";',
        "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
        "listener.name.sasl_ssl.ssl.keystore.location": str(tmp_path / "server.pem"),
    }
    with broker:
        yield port


def settings(folder: Path, port: int, password: str) -> dict[str, str]:
    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    return {
        "kafkastore.bootstrap.servers": f"PLAINTEXT://127.0.0.1:1,SASL_SSL://127.0.0.1:{port}",
        "kafkastore.security.protocol": "SASL_SSL",
        "kafkastore.sasl.mechanism": "PLAIN",
        "kafkastore.sasl.jaas.config": f'{JAAS} username="registry" password="{password}";',
        **{f"kafkastore.{name}": value for name, value in stores.items()},
        **stores,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "inter.instance.protocol": "https",
        "leader.connect.timeout.ms": "1000",
    }


class SecuredRegistry(Registry):
    def __init__(self, folder: Path, name: str, settings: dict[str, str]) -> None:
        port = free_port()
        super().__init__(folder, "", name, {**settings, "listeners": f"https://127.0.0.1:{port}"})
        self.http.close()
        self.url = f"https://127.0.0.1:{port}"
        self.http = httpx.Client(
            base_url=self.url,
            headers=HEADERS,
            timeout=httpx.Timeout(20.0, connect=1.0),
            trust_env=False,
            verify=_trusting(folder / "ca.pem"),
        )


def _trusting(certificates: Path) -> "ssl.SSLContext":
    return ssl.create_default_context(cafile=str(certificates))


def test_instances_log_in_and_forward_over_tls(tmp_path: Path, secured_port: int) -> None:
    secured = settings(tmp_path, secured_port, "registry-secret")
    with SecuredRegistry(tmp_path, "one", secured) as one, SecuredRegistry(tmp_path, "two", secured) as two:
        leader = leader_of([one, two])
        follower = two if leader is one else one
        body = {"schema": record_schema("Order")}
        wait_until(
            lambda: follower.http.post("/subjects/orders/versions", json=body).status_code == 200, "it is forwarded"
        )
        assert leader.subjects() == ["orders"]
        assert "registry-secret" not in one.log_text() + two.log_text()


def test_wrong_password_ends_the_start_with_a_sentence(tmp_path: Path, secured_port: int) -> None:
    wrong = {**settings(tmp_path, secured_port, "wrong-secret"), "kafkastore.init.timeout.ms": "800"}
    registry = SecuredRegistry(tmp_path, "one", wrong)
    registry.launch()
    wait_until(lambda: not registry.is_running, "it ends")
    assert registry.process.returncode == 1
    last = registry.log_text().splitlines()[-1]
    assert "Authentication failed" in last
    assert "wrong-secret" not in registry.log_text()
    assert "Traceback" not in registry.log_text()
    registry.close()
