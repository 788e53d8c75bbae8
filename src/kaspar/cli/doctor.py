"""`kaspar doctor`: reports current and impending problems of a cluster, and the commands that fix them."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kaspar.base.sentences import counted
from kaspar.cli.command import Command
from kaspar.cli.failures import FAILED, WrongUsage
from kaspar.cli.printable import printable
from kaspar.cli.session import ClusterChoice, Session, common_options

if TYPE_CHECKING:
    from kaspar.client.admin.session import Admin
    from kaspar.monitor.doctor.access import Access
    from kaspar.monitor.doctor.doctor import Doctor
    from kaspar.monitor.doctor.finding import Finding
    from kaspar.monitor.doctor.observation import Missing, Observation
    from kaspar.monitor.doctor.observing.pages import PageAddress
    from kaspar.supervisor.folder import Folder
    from kaspar.supervisor.plan import ClusterPlan

_EVERY_S: Final = 10.0
_WIDTH: Final = 80
_EXAMPLES: Final = """\
examples:
  kaspar doctor                               observes the cluster for a minute
  kaspar doctor --seconds 0                   observes it once
  kaspar doctor --dir kaspar-data             the cluster of 'kaspar up' there, with its metrics pages
  kaspar doctor --metrics-url 1=http://kafka1:9404/metrics
  kaspar doctor --json | jq -r '.findings[] | select(.severity == "problem") | .command'
  kaspar doctor --plan replication | kafka-reassign-partitions --bootstrap-server localhost:9092 \\
    --execute --reassignment-json-file /dev/stdin

exit codes: 0 if there are no problems and no warnings, 1 if there are; 2 wrong usage, 4 the log-in failed, 5 no broker
responds. Notes do not affect the exit code.
"""


@click.command("doctor", cls=Command, epilog=_EXAMPLES)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60.0,
    metavar="SECONDS",
    help="How long to observe (default: 60). Growth and stalls show only over time; 0 observes once.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="The folder of 'kaspar up': provides the metrics pages and, by default, the cluster.",
)
@click.option(
    "--metrics-url",
    "metrics_urls",
    multiple=True,
    metavar="BROKER=URL",
    help="The metrics page of a broker; may be repeated. Needed for the load and compaction checks.",
)
@click.option(
    "--plan",
    "plan_name",
    type=click.Choice(["replication", "spread"]),
    help="Print a reassignment for kafka-reassign-partitions instead: more replicas for partitions with one, or "
    "replicas and leaders spread over all brokers.",
)
@common_options
def command(
    session: Session, seconds: float, folder: Path | None, metrics_urls: Sequence[str], plan_name: str | None
) -> int:
    """Report current and impending problems of a cluster, each with the command that fixes it. Nothing is changed.
    Parts that this user may not see are skipped and listed."""
    from kaspar.monitor.doctor.doctor import Doctor, findings

    parameters = click.get_current_context().params
    plan = None if folder is None else _cluster_in(folder)
    if plan is not None and not any(parameters[name] for name in ("servers", "profile", "config_file", "settings")):
        session = _session_in(*plan, session)
    access = _access(session, parameters, None if plan is None else plan[0])
    doctor = Doctor(access, _pages(metrics_urls, None if plan is None else plan[1]))
    with session.admin() as admin:
        if plan_name is not None:
            print(_plan(doctor.look(admin), plan_name))
            return 0
        observations = _looks(admin, doctor, seconds, shown=session.output.is_text)
    found = findings(observations)
    last = observations[-1]
    record = {
        "seconds": round((last.at_ms - observations[0].at_ms) / 1000, 1),
        "looks": len(observations),
        "findings": [_row(each) for each in found],
        "not_looked_at": [{"what": each.what, "why": each.why} for each in last.missing],
    }
    session.output.record(record, lambda: _draw(session, observations, found, last.missing))
    return FAILED if any(each.severity != "note" for each in found) else 0


# --- which cluster ----------------------------------------------------------------------------------------------------


def _cluster_in(path: Path) -> "tuple[Folder, ClusterPlan]":
    from kaspar.supervisor.folder import Folder

    folder = Folder(path)
    plan = folder.plan() if folder.path.exists() else None
    if plan is None:
        raise WrongUsage(f"there is no cluster in {folder.path}: 'kaspar up --dir {folder.path}' starts one")
    return folder, plan


def _session_in(folder: "Folder", plan: "ClusterPlan", session: Session) -> Session:
    """A session with the cluster in a folder, with the administrator's log-in if the cluster is secured."""
    config_file = folder.clients / "admin.properties"
    choice = ClusterChoice(plan.bootstrap_servers, config_file=config_file if config_file.exists() else None)
    return Session(choice, session.output)


def _access(session: Session, parameters: dict[str, object], folder: "Folder | None") -> "Access":
    """The options with which the commands in findings reach the same cluster."""
    from kaspar.monitor.doctor.access import Access

    names = {"servers": "-b", "profile": "--profile", "config_file": "--config"}
    options = [word for name, option in names.items() if parameters[name] for word in (option, str(parameters[name]))]
    settings = parameters["settings"]
    assert isinstance(settings, tuple)
    options += [word for setting in settings for word in ("-X", setting)]
    config_file = parameters["config_file"]
    if not options and folder is not None and (folder.clients / "admin.properties").exists():
        config_file = folder.clients / "admin.properties"
        options = ["--config", str(config_file)]
    return Access(
        session.servers,
        tuple(options),
        None if config_file is None else str(config_file),
        None if folder is None else str(folder.path),
    )


def _pages(metrics_urls: Sequence[str], plan: "ClusterPlan | None") -> "dict[int, PageAddress]":
    from kaspar.base.errors import InvalidSetting
    from kaspar.monitor.doctor.observing.pages import PageAddress
    from kaspar.monitor.settings import metrics_pages

    brokers = () if plan is None else plan.brokers
    pages = {broker.id: f"http://{broker.metrics_address}/metrics" for broker in brokers}
    try:
        pages |= metrics_pages(tuple(metrics_urls))
    except InvalidSetting:
        raise WrongUsage("--metrics-url is BROKER=URL, as in 1=http://localhost:9404/metrics") from None
    return {broker_id: PageAddress(url) for broker_id, url in pages.items()}


# --- looking ----------------------------------------------------------------------------------------------------------


def _looks(admin: "Admin", doctor: "Doctor", seconds: float, *, shown: bool) -> "list[Observation]":
    """Observe the cluster at the start, and then about every ten seconds until the time is up."""
    count = math.ceil(seconds / _EVERY_S)
    started = time.monotonic()
    observations = [doctor.look(admin)]
    with _progress(seconds, shown=shown and count > 0) as show:
        for number in range(1, count + 1):
            due = started + seconds * number / count
            while (left := due - time.monotonic()) > 0:
                show.advance(time.monotonic() - started)
                time.sleep(min(left, 0.2))
            observations.append(doctor.look(admin))
    return observations


class _Show:
    def advance(self, elapsed_s: float) -> None:
        """Show that this many seconds have passed."""


@contextmanager
def _progress(seconds: float, *, shown: bool) -> Iterator[_Show]:
    """A progress bar, on a terminal only."""
    import sys

    if not shown or not sys.stderr.isatty():
        yield _Show()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("Observing the cluster"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=seconds)

        class Bar(_Show):
            def advance(self, elapsed_s: float) -> None:
                bar.update(task, completed=elapsed_s)

        yield Bar()


def _plan(observation: "Observation", name: str) -> str:
    from kaspar.monitor.doctor.plans import PLANS, reassignment_json

    return reassignment_json(PLANS[name](observation))


# --- what is printed --------------------------------------------------------------------------------------------------

_HEADINGS: Final = {
    "problem": ("PROBLEMS", "bold red"),
    "warning": ("WARNINGS", "bold yellow"),
    "note": ("NOTES", "bold cyan"),
}


def _row(finding: "Finding") -> dict[str, str | None]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "title": finding.title,
        "resource": finding.resource,
        "detail": finding.detail,
        "command": finding.command,
    }


def _draw(
    session: Session,
    observations: "Sequence[Observation]",
    found: "Sequence[Finding]",
    missing: "Sequence[Missing]",
) -> None:
    for severity, (heading, style) in _HEADINGS.items():
        of_severity = [each for each in found if each.severity == severity]
        if of_severity:
            session.output.heading(heading, style=style)
            for finding in of_severity:
                print("\n".join(finding_lines(finding)))
            print()
    if missing:
        session.output.heading("SKIPPED")
        print("\n".join(_wrapped(f"{each.what}: {each.why}", "  ") for each in missing))
        print()
    print(_wrapped(_summary(observations, found), ""))


def finding_lines(finding: "Finding") -> list[str]:
    lines = [
        _wrapped(f"{finding.title}: {finding.resource} ({finding.code})", "  ", "    "),
        _wrapped(finding.detail, "    "),
    ]
    if finding.command is not None:
        lines.append(f"    $ {printable(finding.command)}")  # not wrapped, so that it can be copied
    return lines


def _wrapped(text: str, indent: str, next_indent: str | None = None) -> str:
    import textwrap

    return textwrap.fill(
        printable(text),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if next_indent is None else next_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(observations: "Sequence[Observation]", found: "Sequence[Finding]") -> str:
    last = observations[-1]
    seconds = (last.at_ms - observations[0].at_ms) / 1000
    counts = [
        counted(count, severity)
        for severity in _HEADINGS
        if (count := sum(finding.severity == severity for finding in found))
    ]
    checked = f"{counted(len(last.brokers), 'broker')} and {counted(len(last.topics), 'topic')}"
    how = f"for {seconds:.0f} s" if len(observations) > 1 else "once"
    nothing = "no problems found in the parts that could be read" if last.missing else "no problems found"
    return f"Checked {checked} {how}: {', '.join(counts) or nothing}."
