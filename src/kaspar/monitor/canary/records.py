"""The canary's records, which are small and readable for people who come across them.

The run distinguishes the records of this monitor from those of an earlier start or another monitor of the same topic.
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    run: str
    sequence: int

    def to_bytes(self) -> bytes:
        return json.dumps({"canary": self.run, "sequence": self.sequence}).encode()


def parse(value: bytes | None) -> CanaryRecord | None:
    """None if it is not a canary's record: other programs may write to the topic."""
    try:
        fields = json.loads(value or b"")
        match fields:
            case {"canary": str(run), "sequence": int(sequence)}:
                return CanaryRecord(run, sequence)
    except (ValueError, RecursionError):
        pass
    return None
