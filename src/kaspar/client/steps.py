"""The steps of decisions, which are generators: cluster_core.py and coordinators.py decide, and a shell does the I/O.

A decision yields a step and is resumed with the step's result or exception. So the same decision runs in the blocking
shell (cluster.py), in the asyncio shell (async_client.py), and in a test without sockets:

    def broker_ids(self) -> Steps[list[int]]:
        response = yield Send(self.address, MetadataRequest(topics=()), None)
        return [broker.node_id for broker in response.brokers]
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kaspar.protocol.schema import Message

Address: TypeAlias = tuple[str, int]
"""Host and port."""

AnyResponse = TypeVar("AnyResponse", bound=Message)


def error_code_of(response: Message) -> int:
    """The top-level error code, which most responses have."""
    code: int = getattr(response, "error_code", 0)
    return code


class Connect(NamedTuple):
    """Connect to a broker, unless there is a connection. The result is the connection's ClientCore."""

    address: Address


class Send(NamedTuple):
    """Send a request, after connecting if needed. The result is the response."""

    address: Address
    message: Message
    version: int | None


class SendOnly(NamedTuple):
    """Send a request that has no response: Produce with acks=0."""

    address: Address
    message: Message


class SendAll(NamedTuple):
    """Send all of these requests before waiting. The result is the list of the responses."""

    address: Address
    messages: Sequence[Message]
    version: int | None


class Wait(NamedTuple):
    seconds: float


Step: TypeAlias = Connect | Send | SendOnly | SendAll | Wait
_Result = TypeVar("_Result")
Steps: TypeAlias = Generator[Step, Any, _Result]
