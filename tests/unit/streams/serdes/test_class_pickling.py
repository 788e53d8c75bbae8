"""Classes of the program itself reach Spark's workers whole, or are refused."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from pyspark import cloudpickle

from kaspar.streams import serdes
from kaspar.streams.serdes import SerializationError

PROGRAM = """
from __future__ import annotations
import sys
from dataclasses import dataclass, field
from typing import NamedTuple
from pyspark import cloudpickle
from kaspar.streams import serdes

class Place(NamedTuple):
    row: int

@dataclass(frozen=True, slots=True)
class Named:
    name: Name

@dataclass(frozen=True, slots=True)
class Part(Named):
    place: Place
    parts: list[Part] = field(default_factory=list)

Name = str

serde = serdes.structured(Part)
part = Part("whole", Place(1), [Part("half", Place(2))])
assert serde.deserialize("t", serde.serialize("t", part)) == part
sys.stdout.buffer.write(cloudpickle.dumps((serde, part)))
"""
WORKER = """
import pickle, sys
serde, part = pickle.load(sys.stdin.buffer)
written = serde.serialize("t", part)
assert serde.deserialize("t", written) == part
sys.stdout.buffer.write(written)
"""


class InModule(msgspec.Struct):
    name: str


def run(*command: str | Path, given: bytes = b"") -> bytes:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *command], input=given, stdout=-1, env=environment, check=True).stdout


def pickled(value: object) -> bytes:
    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


def test_dataclasses_of_the_program_arrive_whole(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    written = run("-c", WORKER, given=run(program))
    assert written == b'{"name":"whole","place":[1],"parts":[{"name":"half","place":[2],"parts":[]}]}'


def test_structs_that_would_lose_their_fields_are_refused() -> None:
    class InFunction(msgspec.Struct):
        name: str

    serde = serdes.structured(InFunction)
    assert serde.serialize("t", InFunction("a")) == b'{"name":"a"}'
    with pytest.raises(SerializationError, match=r"InFunction is defined in the program itself"):
        pickled(serde)


def test_structs_of_a_module_travel() -> None:
    assert cloudpickle.loads(pickled(serdes.structured(InModule))).serialize("t", InModule("a")) == b'{"name":"a"}'
