"""The fields in which two trees of plain data differ."""

from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"


@dataclass(frozen=True)
class Difference:
    path: str  # step 2: Fetch / responses / t / partitions / 0 / error_code
    kafka: Any
    subject: Any

    def __str__(self) -> str:
        return f"{self.path}\n    Apache Kafka: {_short(self.kafka)}\n    Kaspar:       {_short(self.subject)}"


def differences(kafka: Any, subject: Any, path: str = "") -> list[Difference]:
    if isinstance(kafka, dict) and isinstance(subject, dict):
        names = [*kafka, *(name for name in subject if name not in kafka)]
        return [
            difference
            for name in names
            for difference in differences(kafka.get(name, ABSENT), subject.get(name, ABSENT), _below(path, name))
        ]
    if isinstance(kafka, list) and isinstance(subject, list) and len(kafka) == len(subject):
        pairs = enumerate(zip(kafka, subject, strict=True))
        return [found for number, (left, right) in pairs for found in differences(left, right, _below(path, number))]
    # A bool is not the number it equals.
    return [] if type(kafka) is type(subject) and kafka == subject else [Difference(path, kafka, subject)]


def _below(path: str, name: object) -> str:
    return f"{path} / {name}" if path else str(name)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 600 else f"{text[:600]}... ({len(text)} characters)"
