"""The session of an administrator: selects the node for each call, and retries.

As in Kafka's Admin, a session has two timeouts: for one request (request.timeout.ms) and for a whole call with its
retries (default.api.timeout.ms). Every call of this package may be sent twice without harm, so calls are retried when a
response is lost.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.cluster import Client
from kaspar.client.core import UnsupportedByPeer
from kaspar.client.steps import Address, AnyResponse, error_code_of
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.security.client import ClientSecurity

REQUEST_TIMEOUT_S: Final = 30.0
API_TIMEOUT_S: Final = 60.0
RETRY_BACKOFF_S: Final = 0.1
BROKER_ENDPOINTS: Final = 1
CONTROLLER_ENDPOINTS: Final = 2
"""The endpoint types of DescribeCluster: listeners of brokers, or of controllers (KIP-919)."""

_NOT_AT_CONTROLLERS: Final = (
    "This Admin API is not yet supported when communicating directly with the controller quorum."
)

_TRANSIENT: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)

_Result = TypeVar("_Result")


class Admin:
    """Not thread-safe."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        via_controllers: bool = False,
        client_id: str = "kaspar-admin",
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        api_timeout_s: float = API_TIMEOUT_S,
        on_unreachable: Callable[[OSError], None] = lambda error: None,
        security: "ClientSecurity | None" = None,
    ) -> None:
        """`bootstrap_servers` are the addresses of some brokers: host:port,host:port; with `via_controllers`, those of
        some controllers, which serve only part of the calls. `on_unreachable` is called for every failed attempt.

        Raises ValueError if the addresses are not of that form."""
        self.client = Client(bootstrap_servers, client_id=client_id, timeout_s=request_timeout_s, security=security)
        self.via_controllers = via_controllers
        self.api_timeout_s = api_timeout_s
        self.report_unreachable = on_unreachable

    @property
    def timeout_ms(self) -> int:
        """The value for requests that have a timeout field."""
        return int(self.api_timeout_s * 1000)

    def ask_any(
        self,
        call: str,
        message: Message,
        response_class: type[AnyResponse],
        *,
        code_of: Callable[[AnyResponse], int] = error_code_of,
        at_controllers: bool = False,
    ) -> AnyResponse:
        """The response of any broker. In a session with controllers, the response of the active one if the call is
        supported `at_controllers`. `call` is the name of the call in Kafka's Admin, for error messages."""
        if self.via_controllers and not at_controllers:
            raise Refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, _NOT_AT_CONTROLLERS)
        if self.via_controllers:
            return self.ask_controller(call, message, response_class, code_of=code_of)
        return self.retry(call, lambda: self.client.request(message, response_class), code_of)

    def ask_controller(
        self,
        call: str,
        message: Message,
        response_class: type[AnyResponse],
        *,
        code_of: Callable[[AnyResponse], int] = error_code_of,
    ) -> AnyResponse:
        """The response of the active controller."""

        def attempt() -> AnyResponse:
            if self.via_controllers:
                return self.client.request_at(self._controller(), message, response_class)
            return self.client.request_controller(message, response_class)

        return self.retry(call, attempt, code_of)

    def ask_broker(
        self,
        call: str,
        broker_id: int,
        message: Message,
        response_class: type[AnyResponse],
        *,
        code_of: Callable[[AnyResponse], int] = error_code_of,
    ) -> AnyResponse:
        """The response of that broker, or of that controller in a session with controllers. While the node is not in
        the cluster's metadata, the call waits for it.
        """

        def attempt() -> AnyResponse:
            if self.via_controllers:
                return self.client.request_at(self._controller(broker_id), message, response_class)
            return self.client.request_broker(broker_id, message, response_class)

        return self.retry(call, attempt, code_of)

    def retry(
        self, call: str, attempt: Callable[[], _Result], code_of: Callable[[_Result], int] = lambda response: 0
    ) -> _Result:
        """The first response without an error, or with a final error. Raises Refused: REQUEST_TIMED_OUT if the last
        attempt got no response, or else its transient error."""
        deadline = time.monotonic() + self.api_timeout_s
        while True:
            try:
                response = attempt()
                code = code_of(response)
                if code not in _TRANSIENT:
                    return response
                failure = Refused(ErrorCode(code), f"{call}: {ErrorCode(code).name}")
            except Refused as refused:
                if refused.code not in _TRANSIENT:
                    raise
                failure = refused
                if refused.code is ErrorCode.BROKER_NOT_AVAILABLE:
                    failure = no_node(call)
            except OSError as error:
                self.report_unreachable(error)
                failure = no_node(call)
            if time.monotonic() + RETRY_BACKOFF_S > deadline:
                raise failure
            time.sleep(RETRY_BACKOFF_S)
            if failure.code is ErrorCode.NOT_CONTROLLER and not self.via_controllers:
                self._look_up_controller()

    def _look_up_controller(self) -> None:
        try:
            self.client.refresh_metadata([])
        except OSError as error:
            self.report_unreachable(error)

    def _controller(self, node_id: int | None = None) -> Address:
        """The address of this controller, or of the active one (None)."""
        from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

        found = self.client.request(
            DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=CONTROLLER_ENDPOINTS),
            DescribeClusterResponse,
        )
        refuse(found.error_code, found.error_message)
        for node in found.brokers:
            if node.broker_id == (found.controller_id if node_id is None else node_id):
                return node.host, node.port
        if node_id is None:
            raise Refused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        raise Refused(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no controller {node_id}")

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def refuse(error_code: int, message: str | None = None) -> None:
    """Raise Refused, unless the code is NONE."""
    if (refused := refusal(error_code, message)) is not None:
        raise refused


def refusal(error_code: int, message: str | None = None) -> Refused | None:
    """The error of a response, or None. Without a message the name of the code is used."""
    if error_code == ErrorCode.NONE:
        return None
    try:
        code = ErrorCode(error_code)
    except ValueError:  # a code of a newer version of Kafka
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"error code {error_code}")
    return Refused(code, message or code.name)


def accepted(result: _Result | Refused) -> _Result:
    """The result of one part of a call. Raises it if it is a Refused."""
    if isinstance(result, Refused):
        raise result
    return result


def raise_first(results: Iterable[object]) -> None:
    """Raise the first result that is a Refused. Other parts of the call may have succeeded."""
    for result in results:
        if isinstance(result, Refused):
            raise result


def common_code(error_codes: Iterable[int]) -> int:
    """The error code of a response if all its parts have the same code, or else NONE. A node that is not the
    controller, or cannot reach it, returns its error for every part.
    """
    codes = set(error_codes)
    return codes.pop() if len(codes) == 1 else ErrorCode.NONE


@contextmanager
def kaspar_only(broker_id: int) -> Iterator[None]:
    """A context for requests that Apache Kafka does not know: its brokers close the connection, which is raised as
    UnsupportedByPeer."""
    try:
        yield
    except ConnectionResetError as problem:
        raise UnsupportedByPeer(
            f"broker {broker_id} closed the connection: it is stopping, or it is not a Kaspar broker"
        ) from problem


def no_node(call: str) -> Refused:
    return Refused(ErrorCode.REQUEST_TIMED_OUT, f"Timed out waiting for a node assignment. Call: {call}")
