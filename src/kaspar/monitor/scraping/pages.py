"""Reads the metrics pages of all brokers concurrently, with only the required families."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import httpx

from kaspar.base.errors import InvalidSetting
from kaspar.monitor.scraping.catalogue import FAMILIES, values_of
from kaspar.monitor.scraping.exposition import parse
from kaspar.monitor.settings import MonitorSettings, metrics_pages

_TIMEOUT_S: Final = 2.0
_MAX_BYTES: Final = 16 << 20
"""A larger page is not a broker's."""


class MetricsPages:
    """Raises InvalidSetting with a sentence."""

    def __init__(self, settings: MonitorSettings) -> None:
        self._urls = metrics_pages(settings.kaspar_metrics_urls)
        self.problems: dict[int, str] = {}
        """Why the pages of brokers could not be read at the last attempt."""
        user, password = settings.kaspar_metrics_user, settings.kaspar_metrics_password or ""
        self._client = httpx.AsyncClient(
            timeout=_TIMEOUT_S,
            auth=(user, password) if user else None,
            verify=_trust(settings.kaspar_metrics_ca_location),
            trust_env=False,
        )

    @property
    def exist(self) -> bool:
        return bool(self._urls)

    async def read(self) -> Mapping[int, Mapping[str, float]]:
        """The values of those pages that could be read."""
        pages = await asyncio.gather(*(self._read(url) for url in self._urls.values()))
        results = dict(zip(self._urls, pages, strict=True))
        self.problems = {broker: page for broker, page in results.items() if isinstance(page, str)}
        return {broker: page for broker, page in results.items() if not isinstance(page, str)}

    async def _read(self, url: str) -> dict[str, float] | str:
        """The values, or the reason why there are none."""
        try:
            async with self._client.stream("GET", url, params=[("name[]", each) for each in FAMILIES]) as response:
                response.raise_for_status()
                parts, size = [], 0
                async for part in response.aiter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > _MAX_BYTES:
                        return f"the page has more than {_MAX_BYTES} bytes"
        except httpx.HTTPError as problem:
            return str(problem) or type(problem).__name__
        return values_of(parse(b"".join(parts).decode(errors="replace")))

    async def close(self) -> None:
        await self._client.aclose()


def _trust(ca_file: str) -> ssl.SSLContext | bool:
    if not ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as problem:
        raise InvalidSetting(f"kaspar.metrics.ca.location={ca_file} cannot be used: {problem}") from None
