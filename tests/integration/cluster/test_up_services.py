"""The services of `kaspar up` beside the brokers, all of them in one process."""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ServicePlan
from kaspar.supervisor.ports import consecutive_free_ports
from kaspar.supervisor.service_settings import service_settings
from kaspar.supervisor.settings import properties_text
from kaspar.web.catalogue import SERVICES
from tests.integration.cluster.up import Up, all_gone, until
from tests.integration.commands import run

MOST_IDLE_MB = 150
ANY_PORTS = tuple(word for name in SERVICES for word in (f"--{name}-port", "0"))


def urls_of(status: dict[str, Any]) -> dict[str, str]:
    return {service["name"]: service["url"] for service in status["services"]}


def ask(url: str, body: object = None, *, user: tuple[str, str] | None = None, ca: Path | None = None) -> Any:
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode())
    request.add_header("content-type", "application/vnd.schemaregistry.v1+json")
    if user is not None:
        request.add_header("authorization", "Basic " + base64.b64encode(":".join(user).encode()).decode())
    context = None if ca is None else ssl.create_default_context(cafile=str(ca))
    with urllib.request.urlopen(request, timeout=30, context=context) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("up") / "c1", services=ANY_PORTS) as up:
        yield up


def test_they_serve_where_status_says(running: Up) -> None:
    status = running.ready()
    assert [(each["name"], each["state"]) for each in status["services"]] == [(name, "ready") for name in SERVICES]
    assert len({each["pid"] for each in status["services"]}) == 1, "one process has them all"
    urls = urls_of(status)
    assert f"bootstrap servers 127.0.0.1:{running.port}, data in {running.folder}" in running.wait_for("Ready after")
    table = run("kaspar", "status", "--dir", running.folder).stdout
    for name, url in urls.items():
        assert running.wait_for(f"{SERVICES[name].title} ") == f"{SERVICES[name].title} {url}"
        assert url in table
    assert ask(f"{urls['registry']}/subjects/orders-value/versions", {"schema": '"string"'})["id"] == 1
    assert "_schemas" in ask(f"{urls['rest']}/topics")


def test_console_and_monitor_see_the_brokers(running: Up) -> None:
    urls = urls_of(running.ready())
    with urllib.request.urlopen(urls["console"], timeout=30) as page:
        assert page.headers["content-type"].startswith("text/html")
        assert b"<title>Kaspar</title>" in page.read()
    until(
        lambda: ask(f"{urls['console']}/api/session")["cluster_id"], "the monitor of the console has seen the brokers"
    )
    assert ask(f"{urls['monitor']}/v3/kafka")["clusters"] == ["local"]


def test_console_and_monitor_serve_while_there_is_no_broker(tmp_path: Path) -> None:
    """What is left after the services were killed and before the brokers are back."""
    absent, *ports = consecutive_free_ports(4)
    urls = dict(zip(("registry", "monitor", "console"), (f"http://127.0.0.1:{port}" for port in ports), strict=True))
    plan = ClusterPlan((BrokerPlan(1, absent, absent),), services=tuple(map(ServicePlan, urls, ports)))
    command = [sys.executable, "-m", "kaspar.services"]
    for service in plan.services:
        file = tmp_path / f"{service.name}.properties"
        file.write_text(properties_text(service_settings(Folder(tmp_path), plan, service)))
        command += [f"--{service.name}", str(file)]
    (tmp_path / "services").mkdir()
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            for name in ("monitor", "console"):
                until(lambda name=name: is_served(urls[name]), f"the {name} serves")  # type: ignore[misc]
            assert process.poll() is None
        finally:
            process.terminate()
            _, log = process.communicate(timeout=30)
        assert process.returncode == 0
        assert b"waiting for the brokers" in log, "the registry has not given up"


def is_served(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=30).close()
    except urllib.error.HTTPError:
        return True  # it has responded
    except OSError:
        return False
    return True


def test_idle_process_takes_little_memory(running: Up) -> None:
    pid = running.ready()["services"][0]["pid"]
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    assert int(line.split()[1]) < MOST_IDLE_MB * 1024, line


def test_killed_process_is_started_again_on_the_same_ports(running: Up) -> None:
    before = running.ready()
    ask(f"{urls_of(before)['registry']}/subjects/kept/versions", {"schema": '"long"'})
    os.kill(before["services"][0]["pid"], signal.SIGKILL)
    running.wait_for(f"services ({', '.join(SERVICES)}) is ready again")
    after = running.ready()
    assert urls_of(after) == urls_of(before)
    assert after["services"][0]["pid"] != before["services"][0]["pid"]
    assert "kept" in ask(f"{urls_of(after)['registry']}/subjects")


def test_port_of_a_service_that_is_taken_is_refused(running: Up, tmp_path: Path) -> None:
    port = str(running.ready()["services"][1]["port"])
    done = run(
        "kaspar", "up", "--dir", tmp_path / "c2", "--port", str(running.port + 1), "--only", "rest", "--rest-port", port
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"kaspar: the REST proxy cannot listen on 127.0.0.1:{port} ")
    assert [file.name for file in (tmp_path / "c2").iterdir()] == ["lock"]


def test_they_stop_with_the_brokers_and_keep_their_ports(tmp_path: Path) -> None:
    with Up(tmp_path / "c1", services=("--only", "registry", "--registry-port", "0")) as up:
        before = up.ready()
        (service,) = before["services"]
        members = up.members()
        assert run("kaspar", "stop", "--dir", up.folder).returncode == 0
        assert up.ended() == 0
        all_gone(members)
        assert [each["state"] for each in up.status()["services"]] == ["stopped"]
        up.start("--dir", str(up.folder))
        assert urls_of(up.ready()) == {"registry": service["url"]}


def test_secured_cluster_has_services_to_which_its_users_log_in(tmp_path: Path) -> None:
    with Up(tmp_path / "c1", "--secure", services=ANY_PORTS) as up:
        urls, ca = urls_of(up.ready()), up.folder / "security" / "ca.pem"
        assert all(url.startswith("https://") for url in urls.values())
        passwords = json.loads((up.folder / "security" / "passwords.json").read_text())
        client = ("client", passwords["client"])
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"{urls['registry']}/subjects", ca=ca)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"{urls['rest']}/topics", user=("client", "guess"), ca=ca)
        assert ask(f"{urls['registry']}/subjects", user=client, ca=ca) == []
        until(lambda: "_schemas" in ask(f"{urls['rest']}/topics", user=client, ca=ca), "the REST proxy lists topics")
        for name in ("monitor", "console"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                ask(urls[name], ca=ca)
        assert ask(f"{urls['console']}/api/session", user=client, ca=ca)["caller"] == "client"
        for url in (f"{urls['monitor']}/v1/rates", f"{urls['console']}/api/rates?name=messages_in"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                ask(url, user=client, ca=ca)
            ask(url, user=("admin", passwords["admin"]), ca=ca)
        assert str(up.folder / "security" / "passwords.json") in up.wait_for("Their passwords are in")
        for file in (*(up.folder / "services").glob("*.properties"), up.folder / "security" / "http-users"):
            assert file.stat().st_mode & 0o077 == 0, f"{file} holds a password"
