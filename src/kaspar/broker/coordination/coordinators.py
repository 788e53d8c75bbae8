"""The coordinators of a broker: created when they are first needed, updated with the cluster's image, and stopped.

A broker whose clients only produce and fetch never loads the code of groups and transactions: it starts faster and
needs less memory. A coordinator is created when its internal topic exists, or when a client first looks for it.
"""

import importlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from kaspar.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from kaspar.broker.coordination.markers import GiveMarker
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageChange

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.transactions import Transactions


GROUPS_MODULE: Final = "kaspar.broker.coordination.groups"
TRANSACTIONS_MODULE: Final = "kaspar.broker.coordination.transactions"


class Coordinators:
    def __init__(
        self, services: CoordinatorServices, *, next_producer_id: Callable[[], int], write_marker: GiveMarker
    ) -> None:
        self.services = services
        self._next_producer_id = next_producer_id
        self._write_marker = write_marker
        self._groups: Groups | None = None
        self._transactions: Transactions | None = None

    @property
    def groups(self) -> "Groups":
        if self._groups is None:
            from kaspar.broker.coordination.groups import Groups

            self._groups = Groups(self.services)
            self._groups.start()
        return self._groups

    @property
    def transactions(self) -> "Transactions":
        if self._transactions is None:
            from kaspar.broker.coordination.transactions import Transactions

            self._transactions = Transactions(
                self.services, next_producer_id=self._next_producer_id, write_marker=self._write_marker
            )
            self._transactions.start()
        return self._transactions

    async def load_groups(self) -> "Groups":
        """The group coordinator, for callers that can wait: its code is loaded in a thread, which takes 100 ms once."""
        if self._groups is None:
            await self._load_code(GROUPS_MODULE)
        return self.groups

    async def load_transactions(self) -> "Transactions":
        if self._transactions is None:
            await self._load_code(TRANSACTIONS_MODULE)
        return self.transactions

    async def load_needed_code(self, image: ClusterImage) -> None:
        """Load the code that this image needs, before its partitions are hosted and their coordinators created."""
        if CONSUMER_OFFSETS in image.topics:
            await self._load_code(GROUPS_MODULE)
        if TRANSACTION_STATE in image.topics:
            await self._load_code(TRANSACTIONS_MODULE)

    async def _load_code(self, module: str) -> None:
        await self.services.threads.run_blocking(importlib.import_module, module)

    @property
    def made_groups(self) -> "Groups | None":
        """The group coordinator, if it has been created."""
        return self._groups

    @property
    def made_transactions(self) -> "Transactions | None":
        return self._transactions

    def leadership_changed(self, topics: Collection[str]) -> None:
        """Partitions of these topics were added, removed or got another leader: load or unload their shards."""
        if CONSUMER_OFFSETS in topics and self._is_needed(CONSUMER_OFFSETS, self._groups):
            self.groups.runtime.follow()
        if TRANSACTION_STATE in topics and self._is_needed(TRANSACTION_STATE, self._transactions):
            self.transactions.runtime.follow()

    def _is_needed(self, topic: str, coordinator: object) -> bool:
        return coordinator is not None or topic in self.services.partitions.by_name

    def image_changed(self, change: ImageChange) -> None:
        if self._groups is not None:
            self._groups.image_changed(change)
        if self._transactions is not None:
            self._transactions.image_changed(change)

    async def stop(self) -> None:
        """Stop the coordinators. Waiting requests are refused. Safe to call twice."""
        for coordinator in (self._groups, self._transactions):
            if coordinator is not None:
                await coordinator.stop()
