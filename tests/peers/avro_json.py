"""Avro's JSON encoding as Java does it: JsonEncoder and JsonDecoder.

with AvroJson() as java:
    java.encode('"int"', "1") == b"\\x02"; java.decode('"int"', b"\\x02") == 1
"""

import json
from pathlib import Path
from typing import Any

from tests.peers.avro_java import POM, JavaRefused
from tests.peers.java_process import JavaProcess, compiled
from tests.peers.kafka import jars_of

SOURCE = Path(__file__).with_name("AvroJson.java")
CALL_SECONDS = 30.0


class AvroJson(JavaProcess):
    def __init__(self) -> None:
        jars = f"{jars_of('avro-1.12.0', POM)}/*"
        super().__init__("AvroJson", f"{compiled('avro-json', SOURCE, POM, jars)}:{jars}")

    def encode(self, schema: str, text: str) -> bytes:
        """Raises JavaRefused."""
        return bytes.fromhex(self._call("encode", schema, text))

    def decode(self, schema: str, data: bytes) -> Any:
        """Raises JavaRefused."""
        return json.loads(self._call("decode", schema, data.hex()))

    def _call(self, direction: str, schema: str, value: str) -> str:
        outcome, _, result = self.ask(f"{direction}\t{schema}\t{value}", CALL_SECONDS).partition("\t")
        if outcome == "error":
            raise JavaRefused(result)
        assert outcome == "ok", outcome
        return result
