"""What is asked of both brokers, as data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.compat.responses.api import Api


@dataclass(frozen=True)
class Ask:
    """A request. Its response goes into the transcript."""

    api: Api
    body: Mapping[str, object] = field(default_factory=dict)
    version: int | None = None  # None: the version under test
    learn: Mapping[str, str] = field(default_factory=dict)  # a name for later steps: where in the response it stands
    patience: float | None = None  # seconds to wait for a response where none is likely; None: as long as it takes
    has_response: bool = True  # False: the protocol says that no response comes
    cut: int = 0  # bytes left out at the end of the body: undecodable
    extra: bytes = b""  # bytes added after the body
    guest: bool = False  # from another address, which ACLs can tell from that of all other steps
    broker: int | None = None  # of a cluster; None: the stage's own


@dataclass(frozen=True)
class Eventually:
    """A request that is repeated until its response holds a value, as a change spreads inside the broker.

    Only that it came to hold is compared, unless `compare` asks for the last response too.
    """

    api: Api
    body: Mapping[str, object]
    path: str  # where in the response
    value: object
    compare: bool = False
    broker: int | None = None


@dataclass(frozen=True)
class Raw:
    """A frame made by hand; the response, if any, is read as that of this API and version."""

    payload: bytes
    api: Api
    response_version: int


@dataclass(frozen=True)
class RawStream:
    """Bytes with no frame around them, after which the connection must be closed or stay silent."""

    data: bytes


Step = Ask | Eventually | Raw | RawStream


@dataclass(frozen=True)
class NewTopic:
    """A topic that is there, with leaders, before the first step."""

    short: str = "t"
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()  # the brokers of each partition, its leader first; then no `partitions`


@dataclass(frozen=True)
class Scenario:
    name: str  # a sentence, unique within its API
    api: Api
    steps: Sequence[Step]
    topics: Sequence[NewTopic] = ()
    versions: Sequence[int] | None = None  # None: every version of the API that Kafka serves
    masks: Sequence[str] = ()  # paths of fields that vary in this scenario alone
    unordered: Sequence[str] = ()  # paths of lists whose order varies in this scenario alone
    given: Sequence[Step] = ()  # done before the steps, not compared
    shared: bool = False  # the topics and what is given are made once for all versions: for steps that may be repeated

    @property
    def slug(self) -> str:
        name = re.sub(r"-(?=\d)", "minus ", f"{self.api.schema} {self.name}".lower())
        return re.sub(r"[^a-z0-9]+", "-", name).strip("-")

    def tested_versions(self) -> Sequence[int]:
        return self.api.versions if self.versions is None else self.versions
