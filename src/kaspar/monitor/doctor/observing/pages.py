"""Metrics pages of brokers, and their clocks according to the Date header of the page."""

import http.client
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final
from urllib.parse import urlencode

from kaspar.monitor.doctor.checks.load import FAMILIES
from kaspar.monitor.doctor.observation import ClockSeen, PageSeen
from kaspar.monitor.doctor.observing.parts import Parts
from kaspar.monitor.scraping.exposition import Sample, parse

_TIMEOUT_S: Final = 2.0
_MAX_BYTES: Final = 16 << 20
_DATE_RESOLUTION_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class PageAddress:
    url: str
    authorization: str | None = None
    """The value of the Authorization header, if the page requires authentication."""
    ca_file: str | None = None


def look_at_pages(
    addresses: Mapping[int, PageAddress], parts: Parts, now_ms: Callable[[], int]
) -> tuple[dict[int, PageSeen], dict[int, ClockSeen]]:
    pages, clocks = {}, {}
    for broker_id, address in addresses.items():
        found = parts.read(f"metrics page of broker {broker_id}", partial(_read, address, now_ms))
        if found is not None:
            pages[broker_id], clock = found
            if clock is not None:
                clocks[broker_id] = clock
    return pages, clocks


def _read(address: PageAddress, now_ms: Callable[[], int]) -> tuple[PageSeen, ClockSeen | None]:
    """Raises OSError."""
    query = urlencode([("name[]", family) for family in FAMILIES])
    request = urllib.request.Request(f"{address.url}?{query}")  # the URL was checked to be http or https
    if address.authorization is not None:
        request.add_header("Authorization", address.authorization)
    context = ssl.create_default_context(cafile=address.ca_file)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    started = time.monotonic()
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as response:
            took_ms = int((time.monotonic() - started) * 1000)
            clock = _clock(response.headers.get("Date"), now_ms(), took_ms)
            text = response.read(_MAX_BYTES).decode(errors="replace")
    except http.client.HTTPException as problem:
        raise OSError(f"invalid metrics page: {problem}") from None
    families: dict[str, list[Sample]] = {}
    for sample in parse(text):
        families.setdefault(sample.name, []).append(sample)
    return PageSeen({name: tuple(families[name]) for name in FAMILIES if name in families}), clock


def _clock(date: str | None, now_ms: int, took_ms: int) -> ClockSeen | None:
    """The Date header has a resolution of a second, and was written at some time during the request."""
    try:
        at_ms = int(parsedate_to_datetime(date or "").timestamp() * 1000)
    except ValueError:
        return None
    middle_ms = at_ms + _DATE_RESOLUTION_MS // 2
    return ClockSeen(middle_ms - (now_ms - took_ms // 2), (_DATE_RESOLUTION_MS + took_ms) // 2, "its metrics page")
