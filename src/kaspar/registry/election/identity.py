"""The metadata that members of a registry's group exchange, in the JSON of Confluent's SchemaRegistryProtocol.

A member's metadata is its identity. The assignment is the same for all members and names the leader. Both are encoded
so that instances of Confluent's registry, Karapace and Kaspar can form one group; unknown fields are ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from kaspar.base.errors import KasparError

PROTOCOL_TYPE: Final = "sr"
PROTOCOL_NAME: Final = "v0"
_VERSION: Final = 1


class NotInstanceJson(KasparError):
    """The bytes are not an identity or an assignment."""


class AssignmentError(IntEnum):
    NONE = 0
    DUPLICATE_URLS = 1
    """Two members have the same URL, so writes cannot be forwarded reliably."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The address of this instance for other instances, and whether it may lead."""

    scheme: str
    host: str
    port: int
    leader_eligibility: bool = True
    is_leader: bool = False
    """Whether it is leading now (for Confluent's `leader.election.sticky`)."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def to_json(self) -> dict[str, object]:
        return {
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.leader_eligibility,
            "scheme": self.scheme,
            "version": _VERSION,
            "leader": self.is_leader,
        }

    def encode(self) -> bytes:
        return _encode(self.to_json())

    @classmethod
    def decode(cls, data: bytes) -> "Identity":
        """Raises NotInstanceJson."""
        return cls.from_json(_decode(data))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Identity":
        """Raises NotInstanceJson."""
        scheme, host, port = fields.get("scheme") or "http", fields.get("host"), fields.get("port")
        if not isinstance(host, str) or not host or not isinstance(scheme, str):
            raise NotInstanceJson("an identity must have a host and a scheme")
        if not isinstance(port, int) or not 0 <= port <= 0xFFFF:
            raise NotInstanceJson("an identity must have a port")
        eligibility = fields.get("master_eligibility", fields.get("leader_eligibility"))
        return cls(scheme, host, port, bool(eligibility), is_leader=bool(fields.get("leader")))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The result of an election. There is no leader if no member is eligible."""

    error: int = AssignmentError.NONE
    leader_id: str | None = None
    """The leader's member id in the group."""
    leader: Identity | None = None

    def encode(self) -> bytes:
        fields: dict[str, object] = {"version": _VERSION, "error": int(self.error)}
        if self.leader_id is not None and self.leader is not None:
            fields |= {"master": self.leader_id, "master_identity": self.leader.to_json()}
        return _encode(fields)

    @classmethod
    def decode(cls, data: bytes) -> "Assignment":
        """Raises NotInstanceJson."""
        fields = _decode(data)
        leader_id, leader = fields.get("master"), fields.get("master_identity")
        error = fields.get("error", 0)
        if not isinstance(error, int) or not isinstance(leader_id, str | None):
            raise NotInstanceJson("an assignment must have an error code and the member id of the leader")
        if not leader_id or leader is None:
            return cls(error)
        if not isinstance(leader, dict):
            raise NotInstanceJson("the leader's identity is not an object")
        return cls(error, leader_id, Identity.from_json(leader))


def _encode(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        raise NotInstanceJson(f"not JSON: {data[:100]!r}") from None
    if not isinstance(fields, dict):
        raise NotInstanceJson(f"not an object: {data[:100]!r}")
    return fields
