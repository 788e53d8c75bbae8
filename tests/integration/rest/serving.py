"""The REST proxy in a thread of its own, over real sockets."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from kaspar.base.clock import Clock
from kaspar.rest.running import RestServer
from kaspar.web.host_thread import HostThread


class RunningRest:
    """`url` is where it listens."""

    def __init__(self, values: Mapping[str, str], *, clock: Clock | None = None) -> None:
        self.server = RestServer({"listeners": "http://127.0.0.1:0", **values}, clock=clock)
        self.url = ""
        self._thread = HostThread([self.server])

    def __enter__(self) -> Self:
        self._thread.start()
        (self.url,) = self._thread.urls["rest"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.stop()
