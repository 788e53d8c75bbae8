"""Commits the offsets of a stream to a consumer group, so that lag tools see its progress.

Only processed offsets are committed, and they are committed even if no batch follows. When Spark asks for the end of
the next micro-batch, it passes its start, and it asks only when everything before that is in its commit log. Spark
never reads these offsets, because its checkpoint has its own. So a failed commit is only a warning, and no query waits
for a coordinator: a thread with its own connection commits the newest offsets.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.spark.offsets import PartitionOffsets

if TYPE_CHECKING:
    from kaspar.client import Client

log = get_log(__name__)

_RETRY_S = 1.0


class GroupCommits:
    def __init__(
        self, group_id: str, connect: "Callable[[], Client]", *, metadata: str = "", retry_s: float = _RETRY_S
    ) -> None:
        """`metadata` is committed with every offset."""
        self.group_id = group_id
        self._metadata = metadata
        self._connect = connect
        self._retry_s = retry_s
        self._changed = threading.Condition()
        self._processed: PartitionOffsets = {}
        self._topic_ids: Mapping[str, UUID] = {}
        self._committed: PartitionOffsets = {}
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._last_warning = ""

    def processed(self, offsets: PartitionOffsets, topic_ids: Mapping[str, UUID]) -> None:
        """Queue a commit of these offsets: everything before them is processed. Returns at once."""
        if offsets == self._processed:
            return
        with self._changed:
            self._processed, self._topic_ids = dict(offsets), dict(topic_ids)
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="group commits", daemon=True)
            self._thread.start()

    def wait_until_committed(self, timeout_s: float) -> bool:
        """Whether everything processed is committed within the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._committed == self._processed, timeout_s)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._retry_s)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        client: Client | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._processed != self._committed)
                if self._is_closed:
                    break
                processed, topic_ids = self._processed, self._topic_ids
            try:
                client = client or self._connect()
                self._commit(client, processed, topic_ids)
            except (OSError, KasparError) as error:
                self._warn(f"The offsets of group {self.group_id!r} could not be committed: {error}.")
                if client is not None:
                    client.close()
                    client = None
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, self._retry_s)
                continue
            with self._changed:
                self._committed = processed
                self._changed.notify_all()
        if client is not None:
            client.close()

    def _commit(self, client: "Client", processed: PartitionOffsets, topic_ids: Mapping[str, UUID]) -> None:
        from kaspar.client.offsets import commit_offsets

        changed = {where: offset for where, offset in processed.items() if self._committed.get(where) != offset}
        refused = commit_offsets(client, self.group_id, changed, topic_ids=topic_ids, metadata=self._metadata)
        if refused:
            self._warn(f"The offsets of group {self.group_id!r} were not all accepted: {_named(refused)}.")

    def _warn(self, sentence: str) -> None:
        if sentence != self._last_warning:
            self._last_warning = sentence
            log.warning(sentence)


def _named(refused: Mapping[TopicPartition, object]) -> str:
    return ", ".join(f"{where}: {getattr(code, 'name', code)}" for where, code in sorted(refused.items()))
