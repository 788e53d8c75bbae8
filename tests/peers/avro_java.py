"""Avro's Java library, which Confluent's registry uses: how it reads a schema, and what it finds incompatible.

with AvroJava() as java:
    java.parse('{"type": "string"}').canonical, java.compare(reader, writer)
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peers.java_process import JavaProcess, compiled
from tests.peers.kafka import jars_of

POM = Path(__file__).with_name("avro-pom.xml")
SOURCE = Path(__file__).with_name("AvroJava.java")
CALL_SECONDS = 30.0


class JavaRefused(Exception):
    """The library raised an exception."""


@dataclass(frozen=True, slots=True)
class JavaSchema:
    canonical: str
    resolved: str


class AvroJava(JavaProcess):
    def __init__(self) -> None:
        jars = f"{jars_of('avro-1.12.0', POM)}/*"
        super().__init__("AvroJava", f"{compiled('avro-java', SOURCE, POM, jars)}:{jars}")

    def parse(self, text: str, references: Sequence[str] = (), *, validate_defaults: bool = True) -> JavaSchema:
        response = self._call(text=text, references=references, validateDefaults=validate_defaults)
        return JavaSchema(response["canonical"], response["resolved"])

    def compare(self, reader: str, writer: str) -> list[tuple[str, str, str]]:
        """Kind, location and message of each incompatibility."""
        return [tuple(found) for found in self._call(reader=reader, writer=writer)["incompatibilities"]]

    def _call(self, **request: object) -> dict[str, Any]:
        response: dict[str, Any] = json.loads(self.ask(json.dumps(request), CALL_SECONDS))
        if "error" in response:
            raise JavaRefused(response["error"])
        return response
