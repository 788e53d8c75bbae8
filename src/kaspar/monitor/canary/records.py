"""The canary's records: small, and readable by people who come across them.

The run tells the records of this monitor from those of an earlier start, or of another monitor of the same topic.
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
    """None if it is not a canary's record: anyone may write to the topic."""
    try:
        fields = json.loads(value or b"")
        match fields:
            case {"canary": str(run), "sequence": int(sequence)}:
                return CanaryRecord(run, sequence)
    except (ValueError, RecursionError):
        pass
    return None
