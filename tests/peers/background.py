"""Something that goes on in a thread while a test does something else."""

import threading
from types import TracebackType
from typing import Self


class Background:
    """`_work` runs from `with` on, and ends soon after `_stop` is set, which the end of the block does and awaits."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
