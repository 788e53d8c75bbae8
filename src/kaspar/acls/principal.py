"""On whose behalf a request is sent, or whom an ACL or a token is for."""

from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's KafkaPrincipal."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"
