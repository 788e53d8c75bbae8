"""Commands that start and stop services, and what they say when something is missing."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kaspar.base.garbage import NEW_OBJECTS
from kaspar.base.processes import program_words
from kaspar.cli.main import main
from kaspar.services import extras, kafka_rest_start, schema_registry_start, schema_registry_stop, stop_command
from kaspar.services.__main__ import main as run_process
from kaspar.web.catalogue import SERVICES


@pytest.mark.parametrize(
    ("command", "service"),
    [
        (["registry"], "registry"),
        (["rest"], "rest"),
    ],
)
def test_missing_package_is_named_with_the_extra_that_brings_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str], service: str
) -> None:
    needing_more = replace(SERVICES[service], packages={"no_such_module": "no-such-package"})
    monkeypatch.setattr(extras, "SERVICES", {**SERVICES, service: needing_more})
    assert main(command) == 1
    sentence = capsys.readouterr().err
    assert f"needs no-such-package, which is not installed: pip install 'kaspar[{service}]'" in sentence


def test_everything_that_services_need_is_installed_here() -> None:
    assert [package for service in SERVICES for package in extras.missing_packages(service)] == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("listeners=127.0.0.1:8081", "is not of the form http://host:port"),
        ("listeners=ftp://127.0.0.1:8081", "listener.protocol.map must say whether ftp is http or https"),
        ("listeners=http://127.0.0.1:0\nauthentication.method=BASIC", "needs kaspar.http.credentials.file"),
        ("listeners=https://127.0.0.1:0", "a listener with TLS needs a key"),
    ],
)
def test_settings_that_cannot_be_used_end_the_start_with_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, sentence: str
) -> None:
    file = tmp_path / "service.properties"
    file.write_text(text)
    for start in (schema_registry_start.main, kafka_rest_start.main):
        assert start([str(file)]) == 1
        assert sentence in capsys.readouterr().err


def test_file_that_is_not_there_ends_the_start_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_process(["--registry", "/nowhere/registry.properties"]) == 1
    assert capsys.readouterr().err == "kaspar: /nowhere/registry.properties cannot be read: No such file or directory\n"


def test_process_without_a_service_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_process([])
    assert "name at least one service" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "service"),
    [
        ("/venv/bin/python /venv/bin/schema-registry-start r.properties", "registry"),
        ("python -m kaspar.services.schema_registry_start r.properties", "registry"),
        ("/venv/bin/python -X dev /venv/bin/kaspar registry --override a=b", "registry"),
        ("/venv/bin/python3 /venv/bin/kafka-rest-start k.properties", "rest"),
        ("python -m kaspar.cli.main rest", "rest"),
        ("vi schema-registry-start", None),
        ("timeout 10 kafka-rest-start k.properties", None),
        ("kaspar registry --help", None),
        ("kaspar topic rest", None),
        ("python -m kaspar.services --registry r.properties", None),
    ],
)
def test_which_processes_are_stopped(line: str, service: str | None) -> None:
    words = program_words(line.split())
    found = [name for name in ("registry", "rest") if stop_command.is_service(name, words)]
    assert found == ([] if service is None else [service])


def test_nothing_to_stop(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_command, "running_programs", lambda: iter(()))
    assert schema_registry_stop.main([]) == 1
    assert capsys.readouterr().err == "schema-registry-stop: the schema registry is not running on this machine\n"


def test_process_that_has_started_collects_garbage_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full run of the collector would stop all requests for a tenth of a second."""

    def run_services(services: object, *, ready: Callable[[Mapping[str, tuple[str, ...]]], None]) -> int:
        assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, 0)
        ready({"registry": ("http://localhost:8081",)})
        assert gc.get_threshold()[0] == NEW_OBJECTS
        assert gc.get_freeze_count() > 0
        return 0

    file = tmp_path / "registry.properties"
    file.write_text("listeners=http://127.0.0.1:0")
    monkeypatch.setattr("kaspar.services.process.run_services", run_services)
    thresholds = gc.get_threshold()
    gc.unfreeze()
    try:
        assert run_process(["--registry", str(file)]) == 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
