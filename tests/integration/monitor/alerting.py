"""Prometheus with the alert rules, at a pace for tests, on brokers and a monitor."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from kaspar.monitor.rules.alert import BROKERS, MONITOR, PROBES, Pace, rules_document
from kaspar.monitor.rules.catalogue import GROUPS
from kaspar.services.making import make_services
from kaspar.supervisor.ports import free_ports
from kaspar.web.host_thread import HostThread
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.prometheus import BlackboxExporter, Prometheus

REPOSITORY: Final = Path(__file__).parents[3]
QUICK_MONITOR: Final = {
    "canary.enable": "true",
    "canary.interval.ms": "50",
    "canary.late.ms": "800",
    "canary.delivery.timeout.ms": "3000",
    "canary.rebalance.interval.ms": "300",
    "canary.window.ms": "2000",
    "cluster.interval.ms": "500",
    "lag.interval.ms": "200",
    "lag.intervals": "5",
}


@contextmanager
def running_monitor(bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its address."""
    address = f"127.0.0.1:{next(free_ports())}"
    values = {"listeners": f"http://{address}", "bootstrap.servers": bootstrap_servers, **QUICK_MONITOR}
    host = HostThread(make_services({"monitor": values | dict(settings or {})}))
    host.start()
    try:
        yield address
    finally:
        host.stop()


def job(name: str, targets: Sequence[str]) -> Mapping[str, Any]:
    return {"job_name": name, "static_configs": [{"targets": list(targets)}]}


def probes(exporter: BlackboxExporter, targets: Mapping[str, str]) -> Mapping[str, Any]:
    """`targets` are modules of deploy/prometheus/blackbox.yml by what they look at. As deploy/prometheus/prometheus.yml
    has it."""
    return {
        "job_name": PROBES,
        "metrics_path": "/probe",
        "static_configs": [{"targets": [target], "labels": {"module": module}} for target, module in targets.items()],
        "relabel_configs": [
            {"source_labels": ["module"], "target_label": "__param_module"},
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"source_labels": ["__param_target"], "target_label": "instance"},
            {"target_label": "__address__", "replacement": exporter.address},
        ],
    }


def watching(
    folder: Path,
    *,
    brokers: Sequence[str] = (),
    monitor: str | None = None,
    more: Sequence[Mapping[str, Any]] = (),
    interval: str = "500ms",
) -> Prometheus:
    """Prometheus that scrapes these addresses of metrics pages, with rules that do not wait."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [job(BROKERS, brokers), *([] if monitor is None else [job(MONITOR, [monitor])]), *more]
    return Prometheus(folder, rules=rules_document(GROUPS, Pace()), jobs=jobs, interval=interval)


# --- faults -----------------------------------------------------------------------------------------------------------

COVERED: Final[set[str]] = set()
"""Alerts that a test makes fire, of the modules that were imported."""

_Test = TypeVar("_Test", bound=Callable[..., None])
_PATIENCE_S: Final = 60.0


def covers(*names: str) -> Callable[[_Test], _Test]:
    """Says which alerts a test makes fire."""
    COVERED.update(names)
    return lambda test: test


def fires(prometheus: Prometheus, names: Collection[str], action: Callable[[], object] = lambda: None) -> None:
    """Repeat the action until all of these alerts fire."""
    until = time.monotonic() + _PATIENCE_S
    while missing := set(names) - prometheus.firing_names():
        assert time.monotonic() < until, f"these do not fire within {_PATIENCE_S:g} s: {missing}"
        action()
        time.sleep(0.1)


@contextmanager
def observed(
    folder: Path, overrides: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[ObservedBroker]:
    """A broker whose metrics page keeps its port."""
    settings = {"kaspar.metrics.listener": f"127.0.0.1:{next(free_ports())}", **(overrides or {})}
    with ObservedBroker(folder / "broker", overrides=settings, environment=environment) as broker:
        yield broker


def page_of(broker: ObservedBroker) -> str:
    return broker.overrides["kaspar.metrics.listener"]


@contextmanager
def watched(broker: ObservedBroker, folder: Path, *, interval: str = "500ms") -> Iterator[Prometheus]:
    with watching(folder / "prometheus", brokers=[page_of(broker)], interval=interval) as prometheus:
        wait_until(lambda: bool(prometheus.query(f'up{{job="{BROKERS}"}} == 1')), "the broker is scraped")
        yield prometheus
