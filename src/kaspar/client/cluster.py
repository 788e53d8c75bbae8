"""The blocking client of a cluster: runs the decisions of cluster_core.py and coordinators.py over its connections."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, assert_never
from uuid import UUID

from kaspar.base.ids import TopicPartition
from kaspar.client.blocking import Connection
from kaspar.client.cluster_core import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ClusterCore,
    TopicReplaced,
)
from kaspar.client.core import REQUEST_TIMEOUT_S
from kaspar.client.steps import Address, Connect, Send, SendAll, SendOnly, Step, Steps, Wait

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

__all__ = ["EARLIEST_TIMESTAMP", "LATEST_TIMESTAMP", "MAX_TIMESTAMP", "Client", "TopicReplaced"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def _runs(
    decision: Callable[Concatenate[ClusterCore, _Parameters], Steps[_Result]],
) -> Callable[Concatenate["Client", _Parameters], _Result]:
    """A method of Client that runs this decision of ClusterCore."""

    @wraps(decision)
    def method(client: "Client", /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return client.run(decision(client.core, *args, **kwargs))

    return method


class Client:
    """A blocking client, not thread-safe. Its methods are those of ClusterCore, each run to completion."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "kaspar",
        timeout_s: float = REQUEST_TIMEOUT_S,
        security: "ClientSecurity | None" = None,
    ) -> None:
        """`bootstrap_servers` are the addresses of some brokers: host:port,host:port. `security` is created by
        kaspar.security.client from the properties of a Java client.
        """
        self.client_id = client_id
        self.security = security
        self.timeout_s = timeout_s
        self._connections: dict[Address, Connection] = {}
        self.core = ClusterCore(bootstrap_servers, timeout_s=timeout_s, is_connected=self._connections.__contains__)

    request = _runs(ClusterCore.request)
    request_controller = _runs(ClusterCore.request_controller)
    request_broker = _runs(ClusterCore.request_broker)
    request_at = _runs(ClusterCore.request_at)
    request_all_at = _runs(ClusterCore.request_all_at)
    request_leader = _runs(ClusterCore.request_leader)
    refresh_metadata = _runs(ClusterCore.refresh_metadata)
    broker_ids = _runs(ClusterCore.broker_ids)
    leader_of = _runs(ClusterCore.leader_of)
    produce = _runs(ClusterCore.produce)
    fetch = _runs(ClusterCore.fetch)
    offset_at = _runs(ClusterCore.offset_at)

    def forget_leader(self, partition: TopicPartition) -> None:
        """Forget the leader, which has moved or did not respond: it is looked up again before the next use."""
        self.core.forget_leader(partition)

    def topic_id_of(self, topic: str) -> UUID:
        """The topic's id in the last metadata; zero if the broker has no topic ids."""
        return self.core.topic_id_of(topic)

    def connect(self, broker_id: int, *, records_in_place: bool = False) -> Connection:
        """Open a connection that belongs to the caller, for pipelined requests."""
        return self._open(self.core.address_of(broker_id), records_in_place=records_in_place)

    # --- running decisions --------------------------------------------------------------------------------------------

    def run(self, steps: Steps[_Result]) -> _Result:
        """Carry out the steps of a decision until it returns or raises."""
        try:
            step = next(steps)
            while True:
                try:
                    result = self._perform(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as returned:
            value: _Result = returned.value
            return value

    def _perform(self, step: Step) -> object:
        match step:
            case Send(address, message, version):
                with self._connected(address) as connection:
                    return connection.request(message, version)
            case Connect(address):
                return self._connection(address).core
            case SendOnly(address, message):
                with self._connected(address) as connection:
                    connection.send(message, has_response=False)
                return None
            case SendAll(address, messages, version):
                with self._connected(address) as connection:
                    for message in messages:
                        connection.send(message, version)
                    return [connection.receive().message for _ in messages]
            case Wait(seconds):
                time.sleep(seconds)
                return None
        assert_never(step)

    @contextmanager
    def _connected(self, address: Address) -> Iterator[Connection]:
        """The connection to a broker. It is closed if its use fails, because a late response could be attributed to
        another request.
        """
        connection = self._connection(address)
        try:
            yield connection
        except BaseException:
            self._connections.pop(address).close()
            raise

    def _connection(self, address: Address) -> Connection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = self._open(address)
        return connection

    def connect_at(self, address: Address, *, timeout_s: float) -> Connection:
        """Open a connection that belongs to the caller."""
        return Connection(*address, client_id=self.client_id, timeout_s=timeout_s, security=self.security)

    def _open(self, address: Address, *, records_in_place: bool = False) -> Connection:
        return Connection(
            *address,
            client_id=self.client_id,
            timeout_s=self.timeout_s,
            records_in_place=records_in_place,
            security=self.security,
        )

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
