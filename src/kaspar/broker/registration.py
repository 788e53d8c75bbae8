"""This broker's registration in the metadata store, renewed in each of its sessions."""

import contextlib
from collections.abc import Callable
from typing import TypeVar

from kaspar.base.ids import BrokerId
from kaspar.broker.cluster.liveness import has_ended
from kaspar.broker.listeners import Listeners
from kaspar.broker.services import CurrentSettings
from kaspar.controller import register_broker
from kaspar.metadata import BrokerRegistration, Store
from kaspar.metadata.layout.broker_nodes import broker_path
from kaspar.metadata.store import StoreError
from kaspar.storage import LogManager

S = TypeVar("S", bound=Store)


class Registration:
    def __init__(
        self, broker_id: BrokerId, settings: CurrentSettings, *, listeners: Listeners, logs: LogManager
    ) -> None:
        self.epoch = -1
        """The epoch of the last registration; -1 before the first."""
        self.path = ""
        """The store's node of the last registration."""
        self._broker_id = broker_id
        self._settings = settings
        self._listeners = listeners
        self._logs = logs

    async def register(self, store: Store, *, clean_start: bool, wait_s: float = 0.0) -> None:
        """`wait_s`: how long the session of an earlier process of this broker may take to end."""
        registration = BrokerRegistration(
            self._broker_id,
            epoch=-1,
            endpoints=tuple(self._listeners.advertised()),
            rack=self._settings.config.broker_rack,
            clean_start=clean_start,
            log_dirs=tuple(self._logs.directory_ids),
        )
        registered = await register_broker(store, registration, is_dead=self._has_ended, wait_s=wait_s)
        self.epoch = registered.epoch
        self.path = broker_path(self._broker_id, registered.incarnation)

    async def _has_ended(self, earlier: BrokerRegistration) -> bool:
        """Whether the process of an earlier registration has ended: this broker has its port, or nobody has."""
        mine = {(each.host, each.port) for each in self._listeners.advertised()}
        theirs = [(each.host, each.port) for each in earlier.endpoints]
        if any(address in mine for address in theirs):
            return True
        return bool(theirs) and all([await has_ended(*address) for address in theirs])

    async def register_again(self, connect: Callable[[], S], *, wait_s: float = 0.0) -> S:
        """Open another session and register this broker in it. The registration says `clean_start`, because the broker
        has closed no log since it started, and so has not lost the end of any. If the controller has not seen the
        earlier registration, the store remembers whether that followed a crash (`BrokerRegistration.last_crash`).
        """
        store = connect()
        try:
            await self.register(store, clean_start=True, wait_s=wait_s)
        except BaseException:
            with contextlib.suppress(StoreError):
                await store.close()
            raise
        return store
