"""A principal: the sender of a request, the subject of an ACL, or the owner of a token."""

from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's KafkaPrincipal."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"
