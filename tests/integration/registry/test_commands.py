"""The registry as its commands start it, and what a process of services takes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.commands import PROGRAMS
from tests.integration.registry.instances import HEADERS, QUICK_ELECTION, Registry, record_schema, wait_until
from tests.peers.kaspar import KasparProcess
from tests.peers.process import write_properties
from tests.peers.wire import free_port

MOST_IDLE_MB = 100
USERS = {"admin": "admin-secret", "reader": "reader-secret"}


@pytest.fixture
def url() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def file(broker: KasparProcess, settings: dict[str, str], url: str, tmp_path: Path) -> Path:
    file = tmp_path / "registry.properties"
    own = {"listeners": url, "kafkastore.bootstrap.servers": f"PLAINTEXT://{broker.bootstrap}"}
    write_properties(file, {**own, **QUICK_ELECTION, **settings})
    return file


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def is_served(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=20).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("command", [["kaspar", "registry"], ["schema-registry-start"]], ids=lambda words: words[0])
def test_command_serves_with_the_settings_of_a_file_until_it_is_stopped(
    command: list[str], file: Path, url: str
) -> None:
    program, *words = command
    with started([str(PROGRAMS / program), *words, str(file)]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"registry serves {url}\n"
        body = {"schema": record_schema("Order")}
        response = httpx.post(f"{url}/subjects/orders/versions", json=body, headers=HEADERS, trust_env=False)
        assert response.json()["id"] == 1
    assert process.returncode == 0
    assert not is_served(f"{url}/subjects")


def test_settings_of_the_command_line_take_precedence(file: Path, url: str) -> None:
    other = f"http://127.0.0.1:{free_port()}"
    command = [str(PROGRAMS / "schema-registry-start"), str(file), "--override", f"listeners={other}"]
    with started(command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"registry serves {other}\n"
        assert is_served(f"{other}/subjects")
        assert not is_served(f"{url}/subjects")


def test_idle_process_of_registry_and_rest_proxy_takes_little_memory(
    broker: KasparProcess, file: Path, url: str, tmp_path: Path
) -> None:
    rest_url = f"http://127.0.0.1:{free_port()}"
    rest = tmp_path / "rest.properties"
    own = {"listeners": rest_url, "bootstrap.servers": broker.bootstrap, "schema.registry.url": url}
    write_properties(rest, own)
    command = [sys.executable, "-m", "kaspar.services", "--registry", str(file), "--rest", str(rest)]
    with started(command) as process:
        wait_until(lambda: is_served(f"{url}/subjects") and is_served(f"{rest_url}/topics"), "both are served")
        status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        (line,) = [line for line in status if line.startswith("VmRSS")]
        assert int(line.split()[1]) < MOST_IDLE_MB * 1024, line


def test_file_of_permissions_holds_and_is_read_again(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    credentials, permissions = tmp_path / "users", tmp_path / "permissions.json"
    credentials.write_text("".join(f"{name}:{password}\n" for name, password in USERS.items()))
    may_read = {"username": "reader", "operation": "Read", "resource": "Subject:orders"}
    allowed = [{"username": "admin", "operation": "Write", "resource": ".*"}, may_read]
    permissions.write_text(json.dumps({"permissions": allowed}))
    guarded = {
        **settings,
        "authentication.method": "BASIC",
        "kaspar.http.credentials.file": str(credentials),
        "kaspar.registry.authorization.file": str(permissions),
    }
    registry = Registry(tmp_path, broker.bootstrap, "registry", guarded)
    registry.http.auth = ("admin", USERS["admin"])
    with registry:
        for subject in ("orders", "payments"):
            registry.register(subject, record_schema("Order"))
        assert httpx.get(f"{registry.url}/subjects", trust_env=False).status_code == 401
        reader = httpx.Client(base_url=registry.url, auth=("reader", USERS["reader"]), trust_env=False)
        with reader:
            assert reader.get("/subjects").json() == ["orders"]
            assert reader.get("/subjects/payments/versions").status_code == 403
            assert reader.delete("/subjects/orders").status_code == 403
            may_write = {**may_read, "operation": "Write"}
            permissions.write_text(json.dumps({"permissions": [allowed[0], may_write]}))
            wait_until(lambda: reader.delete("/subjects/orders").status_code == 200, "the new permissions hold")
