"""Periodic observations by the doctor, and the findings from them."""

from base64 import b64encode
from collections import deque
from typing import Final

from kaspar.client.admin.session import Admin
from kaspar.monitor.doctor import Access, Doctor, Finding, Observation, findings
from kaspar.monitor.doctor.observing.pages import PageAddress
from kaspar.monitor.sessions import AdminThread
from kaspar.monitor.settings import MonitorConfig, MonitorSettings, metrics_pages

_LOOKS: Final = 10
"""Findings are based on this number of recent looks: trends take some time, but fixed problems must disappear soon."""


class Checkups:
    def __init__(self, config: MonitorConfig) -> None:
        self._doctor = Doctor(Access(config.settings.bootstrap_servers), _pages(config.settings))
        self._admin = AdminThread(config.new_admin, "doctor")
        self._looks: deque[Observation] = deque(maxlen=_LOOKS)

    async def run(self, *, everything: bool = False) -> tuple[Finding, ...]:
        """Raises KasparError or OSError if the cluster cannot be described."""
        return await self._admin.call(lambda admin: self._look(admin, everything))

    def _look(self, admin: Admin, everything: bool) -> tuple[Finding, ...]:
        self._looks.append(self._doctor.look(admin, everything=everything))
        return findings(tuple(self._looks))

    async def close(self) -> None:
        await self._admin.close()


def _pages(settings: MonitorSettings) -> dict[int, PageAddress]:
    user = settings.kaspar_metrics_user
    secret = b64encode(f"{user}:{settings.kaspar_metrics_password or ''}".encode()).decode()
    return {
        broker: PageAddress(url, f"Basic {secret}" if user else None, settings.kaspar_metrics_ca_location or None)
        for broker, url in metrics_pages(settings.kaspar_metrics_urls).items()
    }
