"""Applies the quotas of clients (kaspar.quotas) to requests: what counts against which quota, and what is exempt.

- Produce: the bytes of requests (KIP-13). The response is sent at once, with the throttle time, and the connection's
  next request waits for that time (KIP-219).
- Fetch: the bytes of records in responses to consumers. Over the quota the response is empty, and the bytes do not
  count, because they will be fetched again.
- Every API: the share of the event loop's time (KIP-124), which has a hundred percent; Kafka has a hundred for each
  thread. Requests between brokers are exempt.
- CreateTopics, CreatePartitions and DeleteTopics: partitions (KIP-599).
"""

from collections.abc import Callable
from time import perf_counter
from typing import Final

from kaspar.broker.services import CurrentSettings
from kaspar.metadata.images import ImageChange
from kaspar.network.connection import Connection
from kaspar.network.gates import Principal
from kaspar.protocol.api_keys import ApiKey
from kaspar.quotas.clients import MutationUsage, Usage, UsageReading, client_quotas, mutation_quotas
from kaspar.quotas.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotasByEntity,
)
from kaspar.quotas.rates import Windows

PRODUCE: Final = int(ApiKey.PRODUCE)
FETCH: Final = int(ApiKey.FETCH)
EXEMPT: Final = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.WRITE_TXN_FENCES,
        ApiKey.FOLLOW_IMAGE,
        ApiKey.SUBMIT_EVENT,
    }
)
_MAX_BYTES: Final = (1 << 31) - 1


def steady_ms() -> int:
    return int(perf_counter() * 1000)


class RequestQuotas:
    """The `Quota` of the gates (network/gates.py), and the quotas that handlers apply to fetches and mutations."""

    def __init__(self, settings: CurrentSettings, now_ms: Callable[[], int] = steady_ms) -> None:
        self.produce = client_quotas(PRODUCER_BYTE_RATE)
        self.fetch = client_quotas(CONSUMER_BYTE_RATE)
        self.request_time = client_quotas(REQUEST_PERCENTAGE)
        self.mutations = mutation_quotas(CONTROLLER_MUTATION_RATE)
        self.on_change: list[Callable[[], None]] = []
        """Called when quotas or settings have changed."""
        self._settings = settings
        self._now_ms = now_ms
        self._quotas: QuotasByEntity = {}
        self.at_arrival = False
        """Whether requests are throttled on arrival: there is a quota for Produce, or for request time."""
        self._at_fetch = self._has_produce = self._has_time = False
        self._producers, self._timed_clients = self.produce.by_client, self.request_time.by_client
        self._timed: tuple[str, str | None] | None = None
        """The client whose quota pays for the request that passed the gate last. None: the request is exempt."""
        self._times_fetch = False
        self._max_time_throttle_ms = 0

    # -- what is set ---------------------------------------------------------------------------------------------------

    def follow(self, change: ImageChange) -> None:
        if change.new.client_quotas is not change.old.client_quotas:
            self._quotas = change.new.client_quotas
            self.reconfigure()

    def reconfigure(self) -> None:
        """Apply changed quotas or settings."""
        config = self._settings.config
        windows = Windows(config.quota_window_num, config.quota_window_size_seconds * 1000)
        for kind in (self.produce, self.fetch, self.request_time):
            kind.update(self._quotas, windows)
        self.mutations.update(
            self._quotas,
            Windows(config.controller_quota_window_num, config.controller_quota_window_size_seconds * 1000),
        )
        self._max_time_throttle_ms = windows.size_ms
        self._has_produce, self._has_time = self.produce.enabled, self.request_time.enabled
        self.at_arrival = self._has_produce or self._has_time
        self._at_fetch = self.fetch.enabled or self._has_time
        for changed in self.on_change:
            changed()

    # -- the gate ------------------------------------------------------------------------------------------------------

    def throttle_time_ms(self, principal: Principal, client_id: str | None, api_key: int, request_bytes: int) -> int:
        """How long to throttle a request on arrival. Called while `at_arrival`. Fetches are throttled by `fetched`,
        when their response is ready.
        """
        now_ms = perf_counter() * 1000
        client = principal[1], client_id  # its name: an index is faster
        usage: Usage | None = None
        throttle_time_ms = 0
        if api_key == PRODUCE and self._has_produce:
            usage = self._producers.get(client) or self.produce.find(*client, int(now_ms))
            throttle_time_ms = usage.use(request_bytes, now_ms)
        if self._has_time:
            self._timed = client if api_key not in EXEMPT else None
            self._times_fetch = api_key == FETCH
            if self._times_fetch or self._timed is None:
                return 0
            time_usage = self._timed_clients.get(client) or self.request_time.find(*client, int(now_ms))
            if for_time_ms := time_usage.throttle_time_ms(now_ms):
                usage, throttle_time_ms = self._longer(usage, throttle_time_ms, time_usage, for_time_ms)
        if throttle_time_ms and usage is not None:
            usage.throttled(throttle_time_ms, int(now_ms))
        return throttle_time_ms

    def _longer(
        self, usage: Usage | None, throttle_time_ms: int, time_usage: Usage, for_time_ms: int
    ) -> tuple[Usage | None, int]:
        """The longer of two throttle times. For request time nobody is throttled for longer than a window."""
        for_time_ms = min(for_time_ms, self._max_time_throttle_ms)
        return (time_usage, for_time_ms) if for_time_ms > throttle_time_ms else (usage, throttle_time_ms)

    def count_time(self, connection: Connection, started: float) -> None:
        """Count the time from `started` until now for the request that passed the gate last, which is this
        connection's.
        """
        client = self._timed
        if client is not None and not (self._times_fetch and connection.is_follower):
            ended = perf_counter()
            usage = self._timed_clients.get(client) or self.request_time.find(*client, int(ended * 1000))
            usage.use((ended - started) * 100, ended * 1000)

    # -- fetches of consumers ------------------------------------------------------------------------------------------

    def max_fetch_bytes(self, principal: Principal, client_id: str | None) -> int:
        """The size above which a fetch would be throttled even after a long silence."""
        if not self.fetch.enabled:
            return _MAX_BYTES
        limit = self.fetch.usage(principal.name, client_id, self._now_ms()).limit
        windows = self.fetch.windows
        return _MAX_BYTES if limit is None else int(limit * (windows.samples - 1) * windows.size_ms / 1000)

    def fetched(self, principal: Principal, client_id: str | None, size: int) -> int:
        """Count bytes of records that are about to be sent. Returns the throttle time; if it is not 0, they do not
        count.
        """
        if not self._at_fetch:
            return 0
        now_ms = self._now_ms()
        usage: Usage | None = None
        throttle_time_ms = 0
        if self.fetch.enabled:
            usage = self.fetch.usage(principal.name, client_id, now_ms)
            throttle_time_ms = usage.use(size, now_ms)
            if usage.rate.counted <= size:
                throttle_time_ms = 0  # a batch larger than all windows allow is sent after a silence
        throttled = usage
        if self.request_time.enabled:
            time_usage = self.request_time.usage(principal.name, client_id, now_ms)
            for_time_ms = time_usage.throttle_time_ms(now_ms)
            throttled, throttle_time_ms = self._longer(usage, throttle_time_ms, time_usage, for_time_ms)
        if throttle_time_ms:
            if usage is not None:
                usage.rate.record(-size, now_ms)
            if throttled is not None:
                throttled.throttled(throttle_time_ms, now_ms)
        return throttle_time_ms

    # -- topics --------------------------------------------------------------------------------------------------------

    def mutation_usage(self, principal: Principal, client_id: str | None) -> MutationUsage | None:
        """The usage of this client; None if no quota of this kind is set."""
        return self.mutations.usage(principal.name, client_id, self._now_ms()) if self.mutations.enabled else None

    def now_ms(self) -> int:
        return self._now_ms()

    # -- for the metrics page, in its own thread -----------------------------------------------------------------------

    def readings(self) -> dict[str, list[UsageReading]]:
        """The usage of all clients, by Kafka's name for the kind of quota."""
        now_ms = self._now_ms()
        return {
            "Produce": list(self.produce.readings(now_ms)),
            "Fetch": list(self.fetch.readings(now_ms)),
            "Request": list(self.request_time.readings(now_ms)),
            "ControllerMutation": list(self.mutations.readings(now_ms)),
        }
