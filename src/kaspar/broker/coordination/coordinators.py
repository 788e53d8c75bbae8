"""The coordinators of a broker: made when they are first needed, kept in step with the cluster, stopped with it.

A broker whose clients only produce and fetch never loads the code of groups and transactions, so that it starts as
quickly and takes as little memory as one that has none. A coordinator comes to be when its internal topic is there, or
when a client first looks for it.
"""

import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from kaspar.metadata import ClusterImage

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.transactions import Transactions
    from kaspar.broker.server import Broker


GROUPS_MODULE: Final = "kaspar.broker.coordination.groups"
TRANSACTIONS_MODULE: Final = "kaspar.broker.coordination.transactions"


class Coordinators:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._groups: Groups | None = None
        self._transactions: Transactions | None = None

    @property
    def groups(self) -> "Groups":
        if self._groups is None:
            from kaspar.broker.coordination.groups import Groups

            self._groups = Groups(self._broker)
            self._groups.start()
        return self._groups

    @property
    def transactions(self) -> "Transactions":
        if self._transactions is None:
            from kaspar.broker.coordination.transactions import Transactions

            self._transactions = Transactions(self._broker)
            self._transactions.start()
        return self._transactions

    async def load_groups(self) -> "Groups":
        """As `groups`, for whoever can wait: their code is loaded in a thread, which takes a tenth of a second once."""
        if self._groups is None:
            await self._load_code(GROUPS_MODULE)
        return self.groups

    async def load_transactions(self) -> "Transactions":
        if self._transactions is None:
            await self._load_code(TRANSACTIONS_MODULE)
        return self.transactions

    async def load_needed_code(self, image: ClusterImage) -> None:
        """Before the partitions of this image are hosted, and their coordinators made."""
        if CONSUMER_OFFSETS in image.topics:
            await self._load_code(GROUPS_MODULE)
        if TRANSACTION_STATE in image.topics:
            await self._load_code(TRANSACTIONS_MODULE)

    async def _load_code(self, module: str) -> None:
        await self._broker.run_blocking(importlib.import_module, module)

    @property
    def made_groups(self) -> "Groups | None":
        """Groups, if somebody has needed them."""
        return self._groups

    @property
    def made_transactions(self) -> "Transactions | None":
        return self._transactions

    def leadership_changed(self, topics: Collection[str]) -> None:
        """Partitions of these topics came, went, or have another leader."""
        if CONSUMER_OFFSETS in topics and self._is_needed(CONSUMER_OFFSETS, self._groups):
            self.groups.runtime.follow()
        if TRANSACTION_STATE in topics and self._is_needed(TRANSACTION_STATE, self._transactions):
            self.transactions.runtime.follow()

    def _is_needed(self, topic: str, coordinator: object) -> bool:
        return coordinator is not None or topic in self._broker.partitions.by_name

    def image_changed(self, old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]) -> None:
        if self._groups is not None:
            self._groups.image_changed(old, new, changed_topics)
        if self._transactions is not None:
            self._transactions.image_changed(old, new, changed_topics)

    async def stop(self) -> None:
        """Whoever waits for an answer gets one. Safe to call twice."""
        for coordinator in (self._groups, self._transactions):
            if coordinator is not None:
                await coordinator.stop()
