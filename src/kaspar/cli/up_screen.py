"""The output of `kaspar up` when everything is ready: the addresses and, on a terminal, commands to try.

Pure. The first line, and one line for each service after it, are also printed without a terminal, for example to a log.
"""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from kaspar.supervisor.folder import Folder
    from kaspar.supervisor.plan import ClusterPlan

_DEFAULT_SERVERS: Final = "127.0.0.1:9092"


def ready_lines(
    folder: "Folder", plan: "ClusterPlan", *, seconds: float, default_folder: "Path", on_a_terminal: bool
) -> list[str]:
    """The lines to print. `default_folder` is the folder of commands without --dir."""
    count = f"{len(plan.brokers)} brokers" if len(plan.brokers) > 1 else "one broker"
    first = (
        f"Ready after {seconds:.1f} s: {count}, bootstrap servers {plan.bootstrap_servers}, data in {folder.path}. "
        "Ctrl-C stops."
    )
    services = _services(plan)
    if not on_a_terminal:
        return [first, *(f"{title} {url}" for title, url in services.items())]
    width = max(map(len, services), default=0)
    addresses = [f"  {title:{width}}  {url}" for title, url in services.items()]
    is_default = folder.path == default_folder.resolve()
    in_folder = "" if is_default else f" --dir {shlex.quote(str(folder.path))}"
    return [
        first,
        *(["", *addresses] if addresses else []),
        "",
        "Try, in another terminal:",
        *(f"  {line}" for line in _commands(folder, plan)),
        f"  kaspar status{in_folder}",
        f"  kaspar stop{in_folder}",
    ]


def _services(plan: "ClusterPlan") -> dict[str, str]:
    """The services' URLs by title, the console first."""
    from kaspar.web.catalogue import SERVICES

    urls = sorted(plan.service_urls.items(), key=lambda entry: entry[0] != "console")
    return {SERVICES[name].title: url for name, url in urls}


def _commands(folder: "Folder", plan: "ClusterPlan") -> Iterator[str]:
    if plan.is_secured:
        cluster = f" --config {shlex.quote(str(folder.clients / 'client.properties'))}"
    else:
        cluster = "" if plan.bootstrap_servers == _DEFAULT_SERVERS else f" -b {plan.brokers[0].address}"
    yield f"echo hello | kaspar produce greetings{cluster}"
    yield f"kaspar consume greetings{cluster}"
    log_in = f"--cacert {shlex.quote(str(folder.security / 'ca.pem'))} -u client " if plan.is_secured else ""
    if registry := plan.service_urls.get("registry"):
        yield f"curl {log_in}{registry}/subjects"
    if rest := plan.service_urls.get("rest"):
        yield f"curl {log_in}{rest}/v3/clusters"
