"""The commands that start the registry and the proxy with a settings file, as people run them."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.commands import PROGRAMS
from tests.integration.rest.api import Api
from tests.integration.rest.conftest import NewTopic
from tests.integration.rest.test_produce import AVRO
from tests.peers.process import BrokerProcess

START_S = 60.0


@contextlib.contextmanager
def started(command: list[str], service: str, file: Path, settings: dict[str, str]) -> Iterator[str]:
    """The URL that it says it serves. It ends with SIGTERM, and the exit code 0."""
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    arguments = [str(PROGRAMS / command[0]), *command[1:], str(file)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = _line(process.stdout.fileno())
            assert line.startswith(f"{service} serves http://127.0.0.1:"), line
            yield line.removeprefix(f"{service} serves ").strip()
            process.send_signal(signal.SIGTERM)
            assert process.wait(START_S) == 0
        finally:
            process.kill()


def _line(output: int) -> str:
    deadline, data = time.monotonic() + START_S, b""
    while not data.endswith(b"\n"):
        assert select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0], "nothing was said in time"
        chunk = os.read(output, 1)
        assert chunk, f"it ended: {data!r}"
        data += chunk
    return data.decode()


@pytest.mark.parametrize(
    ("registry", "rest"),
    [(["kaspar", "registry"], ["kaspar", "rest"]), (["schema-registry-start"], ["kafka-rest-start"])],
    ids=["kaspar", "Confluent's names"],
)
def test_commands_start_a_registry_and_a_proxy_that_uses_it(
    rest_broker: BrokerProcess, new_topic: NewTopic, tmp_path: Path, registry: list[str], rest: list[str]
) -> None:
    topic = new_topic()
    schemas = {
        "listeners": "http://127.0.0.1:0",
        "kafkastore.bootstrap.servers": f"PLAINTEXT://{rest_broker.bootstrap}",
        "kafkastore.topic": f"_schemas-{topic}",
        "schema.registry.group.id": f"registry-{topic}",
        "schema.compatibility.level": "full",
        "leader.eligibility": "true",
    }
    with started(registry, "registry", tmp_path / "registry.properties", schemas) as registry_url:
        proxy = {
            "listeners": "http://127.0.0.1:0",
            "bootstrap.servers": f"PLAINTEXT://{rest_broker.bootstrap}",
            "schema.registry.url": registry_url,
            "client.request.timeout.ms": "20000",
        }
        with (
            started(rest, "rest", tmp_path / "rest.properties", proxy) as rest_url,
            httpx.Client(base_url=rest_url, timeout=30) as client,
        ):
            produced = Api(client).produce(topic, {"value_schema": AVRO, "records": [{"value": {"amount": 1}}]}, "avro")
            assert produced.json()["offsets"][0] == {"partition": 0, "offset": 0, "error_code": None, "error": None}
            assert "data" in client.get("/v3/clusters").json()
        assert httpx.get(f"{registry_url}/subjects").json() == [f"{topic}-value"]
        assert httpx.get(f"{registry_url}/config").json() == {"compatibilityLevel": "FULL"}
