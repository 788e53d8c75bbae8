"""The schema registry as each caller sees it: over HTTP, with the caller's credentials if identities are passed on."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, TypeVar

from kaspar.base.bounded_cache import BoundedCache
from kaspar.callers.identities import Identity
from kaspar.serialization.errors import RegistryError, RegistryUnavailable, TooCostly
from kaspar.serialization.records import Decoded, RecordReader, record_writer
from kaspar.serialization.registry_client import RegisteredSchema, RegistryClient
from kaspar.serialization.registry_config import URL, RegistryConfig, registry_config
from kaspar.serialization.registry_http import HttpRequests
from kaspar.serialization.value_processes import ValueProcesses
from kaspar.serialization.wire_format import Headers
from kaspar.web.identity import Scheme

_DEFAULTS: Final = {"http.connect.timeout.ms": "2000", "http.read.timeout.ms": "10000", "max.retries": "0"}
"""A person waits for the page, so requests are short and not retried."""
_PAUSE_S: Final = 5.0
"""How long records are shown without the registry after it could not be reached."""
_SUBJECTS: Final = 1000
_THREADS: Final = 8
"""Threads that are used for calls to registries alone, so that a hanging registry blocks nothing else."""

_Result = TypeVar("_Result")


class CallersRegistry:
    """The registry as one caller sees it. Thread-safe; all calls block."""

    def __init__(
        self, config: RegistryConfig, processes: ValueProcesses, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.requests = HttpRequests(config)
        self.client = RegistryClient(config, requests=self.requests)
        self._processes = processes
        self._reader = RecordReader(self.client, processes)
        self._monotonic = monotonic
        self._asks_again_at = 0.0
        self._subjects: BoundedCache[int, tuple[tuple[str, int], ...]] = BoundedCache(_SUBJECTS, lifetime_s=60.0)
        """The first subject that has a schema and its version there, by schema id; empty if the caller can see none."""

    def decode(self, data: bytes, headers: Headers, *, is_key: bool) -> Decoded:
        """Decode a key or value. Raises SerializationError. After the registry could not be reached, it raises
        RegistryUnavailable at once for a while, because a page has many records."""
        if self._monotonic() < self._asks_again_at and self._reader.blocks_for(data, headers, is_key=is_key):
            raise RegistryUnavailable("The schema registry cannot be reached.")
        try:
            return self._reader.decode(data, headers, is_key=is_key)
        except RegistryUnavailable:
            self._asks_again_at = self._monotonic() + _PAUSE_S
            raise

    def encode(self, schema: RegisteredSchema, message: str | None, data: bytes) -> bytes:
        """Encode JSON with its schema; `message` is as for `record_writer`. Raises SerializationError."""
        writer = record_writer(schema, message, self._processes)
        try:
            return writer.quickly(data)
        except TooCostly:
            return writer.slowly(data)

    def subject_of(self, schema_id: int) -> tuple[str, int] | None:
        """The first subject with the schema, and its version there; None if there is none or no registry responds."""
        known = self._subjects.get(schema_id)
        if known is None:
            if self._monotonic() < self._asks_again_at:
                return None
            try:
                found = self.requests.request("GET", f"/schemas/ids/{schema_id}/versions", {})
                known = tuple((each["subject"], int(each["version"])) for each in found[:1])
            except RegistryUnavailable:
                return None
            except (RegistryError, KeyError, TypeError, ValueError):
                known = ()
            self._subjects.put(schema_id, known)
        return known[0] if known else None

    def request(self, method: str, path: str, parameters: Mapping[str, str] | None = None, body: Any = None) -> Any:
        """The JSON of the registry's response. Raises RegistryError."""
        return self.requests.request(method, path, parameters or {}, body)

    def close(self) -> None:
        self.client.close()


class Registries:
    """The registries of all callers. `properties` are Confluent's, with `schema.registry.url`; without that there is no
    registry. Raises InvalidSetting."""

    def __init__(self, properties: Mapping[str, str], *, identities: int) -> None:
        has_url = bool(properties.get(URL, "").strip())
        self._config = registry_config({**_DEFAULTS, **properties}) if has_url else None
        self._most = identities
        self._processes = ValueProcesses()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="console-registry")
        self._by_identity: OrderedDict[Identity, CallersRegistry] = OrderedDict()

    @property
    def urls(self) -> tuple[str, ...]:
        return () if self._config is None else self._config.urls

    def of(self, identity: Identity) -> CallersRegistry | None:
        """The registry as this identity sees it; None if there is no registry."""
        if self._config is None:
            return None
        with self._lock:
            found = self._by_identity.get(identity)
            if found is None:
                found = self._by_identity[identity] = CallersRegistry(
                    _as_caller(self._config, identity), self._processes
                )
            self._by_identity.move_to_end(identity)
            while len(self._by_identity) > self._most:
                # Calls in progress keep it alive; its connections are closed with the last reference.
                self._by_identity.popitem(last=False)
            return found

    async def call(self, function: Callable[[], _Result]) -> _Result:
        """Call the function in a thread. Returns its result, and raises its exceptions."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    def close(self) -> None:
        """Close all registries. Calls in progress end with the timeouts of their requests."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
        with self._lock:
            for each in self._by_identity.values():
                each.close()
            self._by_identity.clear()


def _as_caller(config: RegistryConfig, identity: Identity) -> RegistryConfig:
    if identity.scheme is Scheme.BASIC:
        credentials = (identity.name or "", identity.credentials)
        return replace(config, credentials=(credentials,) * len(config.urls), token="", issuer=None)
    if identity.token is not None:
        return replace(config, credentials=(), token=identity.token, issuer=None)
    return config
