"""What the resources of the console share: settings, clients, sessions and the monitor."""

from dataclasses import dataclass

from kaspar.base.clock import Clock
from kaspar.callers.clients import KafkaClients
from kaspar.callers.sessions import AdminSessions
from kaspar.console.registries import Registries
from kaspar.console.settings import ConsoleConfig
from kaspar.console.sharing import SharedReads
from kaspar.monitor.core import Monitor


@dataclass(frozen=True, slots=True)
class ConsoleContext:
    config: ConsoleConfig
    clients: KafkaClients
    sessions: AdminSessions
    reads: SharedReads
    registries: Registries
    monitor: Monitor
    clock: Clock

    @property
    def propagates(self) -> bool:
        """Whether brokers see each caller's own identity."""
        return self.config.settings.kaspar_propagate_identity
