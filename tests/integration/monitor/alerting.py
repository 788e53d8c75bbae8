"""Prometheus with the alert rules, at a pace for tests, on brokers and a monitor."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kaspar.monitor.rules.alert import BROKERS, MONITOR, PROBES, Pace, rules_document
from kaspar.monitor.rules.catalogue import GROUPS
from kaspar.services.making import make_services
from kaspar.supervisor.ports import free_ports
from kaspar.web.host_thread import HostThread
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
def running_monitor(bootstrap_servers: str, **more: str) -> Iterator[str]:
    """Its address. `more` are settings, with underscores for dots."""
    address = f"127.0.0.1:{next(free_ports())}"
    values = {"listeners": f"http://{address}", "bootstrap.servers": bootstrap_servers, **QUICK_MONITOR}
    values |= {name.replace("_", "."): value for name, value in more.items()}
    host = HostThread(make_services({"monitor": values}))
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
    folder: Path, *, brokers: Sequence[str] = (), monitor: str | None = None, more: Sequence[Mapping[str, Any]] = ()
) -> Prometheus:
    """Prometheus that scrapes these addresses of metrics pages, with rules that do not wait."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [job(BROKERS, brokers), *([] if monitor is None else [job(MONITOR, [monitor])]), *more]
    return Prometheus(folder, rules=rules_document(GROUPS, Pace()), jobs=jobs)
