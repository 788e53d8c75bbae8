"""The registry clients of other languages. Each has a small program beside this file, built once and kept."""

import base64
import contextlib
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.compat.drivers.lines import LinesProcess
from tests.compat.registry.clients.api import Call, Definition, Written
from tests.peers.downloads import BuildError, DownloadError, ToolMissingError, cached, require_tool, run_step

_HERE = Path(__file__).parent
_JAVASCRIPT = _HERE / "javascript"
_GO = _HERE / "go"
_RUST = _HERE / "rust"


class ForeignClient:
    name: ClassVar[str]
    cannot: ClassVar[frozenset[Call]] = frozenset()

    def __init__(self, command: Sequence[str]) -> None:
        self._process = LinesProcess(self.name, command)

    def register(self, subject: str, definition: Definition) -> int:
        return int(self._process.call("register", subject=subject, **_schema(definition)))

    def lookup(self, subject: str, definition: Definition) -> int:
        return int(self._process.call("lookup", subject=subject, **_schema(definition)))

    def schema(self, subject: str, schema_id: int) -> dict[str, Any]:
        return dict(self._process.call("schema", subject=subject, id=schema_id))

    def subjects(self) -> list[str]:
        return list(self._process.call("subjects"))

    def versions(self, subject: str) -> list[int]:
        return list(self._process.call("versions", subject=subject))

    def compatible(self, subject: str, definition: Definition) -> bool:
        return bool(self._process.call("compatible", subject=subject, **_schema(definition)))

    def set_level(self, subject: str, level: str) -> str:
        return str(self._process.call("level", subject=subject, level=level))

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        return list(self._process.call("delete", subject=subject, permanent=permanent))

    def serialize(self, topic: str, definition: Definition, value: Any, *, header: bool = False) -> Written:
        arguments = {"value": value, "header": header, **_schema(definition), **_message(definition)}
        written = self._process.call("serialize", topic=topic, **arguments)
        headers = [(name, base64.b64decode(text)) for name, text in written["headers"]]
        return Written(base64.b64decode(written["data"]), headers)

    def deserialize(self, topic: str, definition: Definition, written: Written) -> Any:
        arguments = {"type": definition.type, "data": _text(written.data), **_message(definition)}
        headers = [(name, _text(value)) for name, value in written.headers]
        return self._process.call("deserialize", topic=topic, headers=headers, **arguments)

    def close(self) -> None:
        self._process.close()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _schema(definition: Definition) -> dict[str, Any]:
    return {"type": definition.type, "schema": definition.schema, "references": list(definition.references)}


def _message(definition: Definition) -> dict[str, Any]:
    return {"message": definition.message, "descriptors": _text(definition.descriptors)}


class ConfluentJavaScript(ForeignClient):
    name = "confluent-javascript"

    def __init__(self, url: str) -> None:
        super().__init__(_javascript("confluent", url))


class KafkaJs(ForeignClient):
    name = "kafkajs"
    cannot = frozenset({Call.ADMINISTER, Call.SCHEMA, Call.HEADER, Call.MESSAGE_INDEXES})

    def __init__(self, url: str) -> None:
        super().__init__(_javascript("kafkajs", url))


class ConfluentGo(ForeignClient):
    name = "confluent-go"

    def __init__(self, url: str) -> None:
        super().__init__([str(_go_program()), "confluent", url])


class FranzGo(ForeignClient):
    name = "franz-go"
    cannot = frozenset({Call.HEADER})

    def __init__(self, url: str) -> None:
        super().__init__([str(_go_program()), "franz", url])


class RustConverter(ForeignClient):
    """schema_registry_converter. It takes minutes to build, so it is not among the clients of every run."""

    name = "rust"
    cannot = frozenset({Call.ADMINISTER})

    def __init__(self, url: str) -> None:
        super().__init__([str(_rust_program()), url])


FOREIGN = (ConfluentJavaScript, KafkaJs, ConfluentGo, FranzGo)


def build(names: Collection[str]) -> None:
    """Build the programs of these clients now, as far as that is possible: a test that needs one says why not."""
    programs: dict[str, Callable[[], object]] = {
        ConfluentJavaScript.name: _javascript_folder,
        KafkaJs.name: _javascript_folder,
        ConfluentGo.name: _go_program,
        FranzGo.name: _go_program,
        RustConverter.name: _rust_program,
    }
    for name in names & programs.keys():
        with contextlib.suppress(ToolMissingError, DownloadError, BuildError):
            programs[name]()


def _javascript(which: str, url: str) -> list[str]:
    return [require_tool("node"), str(_javascript_folder() / "driver.js"), which, url]


def _javascript_folder() -> Path:
    names = ("package.json", "package-lock.json", *sorted(path.name for path in _JAVASCRIPT.glob("*.js")))

    def build_folder(folder: Path, attempt: int) -> None:
        del attempt
        require_tool("node")
        for name in names:
            shutil.copy(_JAVASCRIPT / name, folder)
        run_step([require_tool("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder=folder)

    return cached("registry-javascript", [_JAVASCRIPT / name for name in names], build_folder)


def _go_program() -> Path:
    sources = [_GO / name for name in ("go.mod", "go.sum", *sorted(path.name for path in _GO.glob("*.go")))]

    def build_program(folder: Path, attempt: int) -> None:
        del attempt
        go = require_tool("go")
        require_tool("gcc")  # confluent-kafka-go binds librdkafka, also where only its serializers are used
        run_step([go, "mod", "download"], folder=_GO)
        run_step([go, "build", "-mod=readonly", "-o", folder / "driver", "."], folder=_GO, failure=BuildError)

    return cached("registry-go", sources, build_program) / "driver"


def _rust_program() -> Path:
    sources = [_RUST / "Cargo.toml", _RUST / "Cargo.lock", _RUST / "src" / "main.rs"]

    def build_program(folder: Path, attempt: int) -> None:
        del attempt
        cargo = require_tool("cargo")
        target = folder / "target"
        run_step([cargo, "fetch", "--locked"], folder=_RUST)
        run_step([cargo, "build", "--locked", "--offline", "--target-dir", target], folder=_RUST, failure=BuildError)
        shutil.copy(target / "debug" / "registry-driver", folder)
        shutil.rmtree(target)

    return cached("registry-rust", sources, build_program) / "registry-driver"
