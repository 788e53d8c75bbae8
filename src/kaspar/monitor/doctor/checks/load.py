"""The load of brokers, and compaction, according to metrics pages."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from kaspar.base.sentences import some
from kaspar.monitor.doctor.check import check
from kaspar.monitor.doctor.finding import Fault, Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import Observation, PageSeen
from kaspar.quotas.entities import QuotaEntity

IDLE_LIMIT: Final = 0.3
"""Below this fraction requests begin to queue; it is the usual alert threshold for request handlers."""
STALL_LIMIT_S: Final = 1.0
STARTING_S: Final = 180.0
"""The page reports stalls of the last two minutes; stalls during the start of a broker do not affect clients."""
SLOW_MS: Final = 1000.0
DESCRIPTORS_LIMIT: Final = 0.85

HANDLERS_IDLE: Final = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
NETWORK_IDLE: Final = "kafka_network_socketserver_networkprocessoravgidle_percent"
LONGEST_STALL: Final = "kaspar_loop_longest_recent_stall_seconds"
START_TIME: Final = "process_start_time_seconds"
TOTAL_TIME: Final = "kafka_network_requestmetrics_totaltimems"
OPEN_FILES: Final = "process_open_fds"
MAX_FILES: Final = "process_max_fds"
DEAD_CLEANERS: Final = "kafka_log_logcleaner_deadthreadcount"
UNCLEANABLE: Final = "kafka_log_logcleanermanager_uncleanable_partitions_count"
COMPACTION_DELAY: Final = "kafka_log_logcleaner_max_compaction_delay_secs"
THROTTLE_TIME: Final = "kafka_server_quota_throttle_time"
FAMILIES: Final = (
    HANDLERS_IDLE, NETWORK_IDLE, LONGEST_STALL, START_TIME, TOTAL_TIME, OPEN_FILES, MAX_FILES, DEAD_CLEANERS,
    UNCLEANABLE, COMPACTION_DELAY, THROTTLE_TIME,
)  # fmt: skip
"""All metric families that the checks read from a page."""
_QUOTAS: Final = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    "Request": "request_percentage",
    "ControllerMutation": "controller_mutation_rate",
}
"""The names of quotas, by the resource in the metrics of throttling."""


@check(
    "broker-busy",
    Severity.WARNING,
    title="A broker is close to its limit",
    why="Its request handlers or network threads have little idle time left: requests queue, and latency grows.",
    remedy="Move leaders to other brokers, add brokers, or find the clients that send the most requests.",
)
def broker_busy(looks: Looks) -> Iterator[Fault]:
    for broker_id in sorted(looks.last.pages):
        for family, what in ((HANDLERS_IDLE, "request handlers"), (NETWORK_IDLE, "network threads")):
            values = _values(looks, broker_id, family)
            if values and len(values) == len(looks.observations) and max(values) < IDLE_LIMIT:
                detail = (
                    f"Its {what} were idle for at most {max(values):.0%} of the time in {len(values)} observations."
                )
                yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("quota", "list"))


def _values(looks: Looks, broker_id: int, family: str) -> list[float]:
    pages = (each.pages[broker_id] for each in looks.observations if broker_id in each.pages)
    return [value for page in pages if (value := page.value(family)) is not None]


@check(
    "event-loop-stalls",
    Severity.WARNING,
    title="A broker's event loop stalled",
    why="It served no clients during the stall: the machine is swapping, its CPU or disk is overloaded, or the "
    "process was paused.",
    remedy="Check the load of the machine. The broker's log names the code that blocked it.",
)
def event_loop_stalls(looks: Looks) -> Iterator[Fault]:
    for broker_id, page in sorted(looks.last.pages.items()):
        longest, started_s = page.value(LONGEST_STALL), page.value(START_TIME) or 0
        is_starting = looks.last.at_ms / 1000 - started_s < STARTING_S
        if longest is not None and longest > STALL_LIMIT_S and not is_starting:
            detail = f"For {longest:.1f} s, in the last two minutes."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("broker", "describe", str(broker_id)))


@check(
    "slow-requests",
    Severity.WARNING,
    title="Produce latency is high",
    why="One in a hundred writes takes more than a second. With acks=all the slowest in-sync replica decides.",
    remedy="Check for a slow disk, a busy follower, or quotas.",
)
def slow_requests(looks: Looks) -> Iterator[Fault]:
    for broker_id in sorted(looks.last.pages):
        values = [_produce_p99(each.pages[broker_id]) for each in looks.observations if broker_id in each.pages]
        if all(value is not None and value > SLOW_MS for value in values):
            slowest = max(value for value in values if value is not None)
            detail = f"The 99th percentile of Produce is {slowest:,.0f} ms."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("broker", "describe", str(broker_id)))


def _produce_p99(page: PageSeen) -> float | None:
    wanted = {"request": "Produce", "quantile": "0.99"}
    return next((each.value for each in page.samples(TOTAL_TIME) if each.labels == wanted), None)


@check(
    "few-file-descriptors",
    Severity.WARNING,
    title="A broker is running out of file descriptors",
    why="At the limit it can neither accept connections nor open segments.",
    remedy="Raise the limit (LimitNOFILE of the service, or ulimit -n) and restart the broker.",
)
def few_file_descriptors(looks: Looks) -> Iterator[Fault]:
    for broker_id, page in sorted(looks.last.pages.items()):
        used, most = page.value(OPEN_FILES), page.value(MAX_FILES)
        if used is not None and most and used / most > DESCRIPTORS_LIMIT:
            detail = f"{used:,.0f} of {most:,.0f} are open."
            yield Fault(f"broker {broker_id}", detail, looks.access.kaspar("broker", "describe", str(broker_id)))


@check(
    "throttled-client",
    Severity.WARNING,
    title="A client is constantly throttled",
    why="It reached its quota in every observation: its throughput is limited to the quota.",
    remedy="Raise the quota, or leave it if this is intended.",
)
def throttled_client(looks: Looks) -> Iterator[Fault]:
    always = set.intersection(*(_throttled(each) for each in looks.observations))
    for quota, user, client_id in sorted(always):
        options = [("--user", user)] if user else []
        options += [("--client-id", client_id)] if client_id else []
        names = " ".join(f"{option[2:]} {name}" for option, name in options)
        words = [word for option in options for word in option]
        limit = looks.last.quotas.get(QuotaEntity(user or None, client_id or None), {}).get(quota)
        detail = f"Its {quota} was used up in each of {len(looks.observations)} observations."
        command = looks.access.kaspar("quota", "list")  # for a default quota, which also applies to others
        if limit is not None:
            command = looks.access.kaspar("quota", "set", *words, f"{quota}={2 * limit:.15g}")
        yield Fault(names, detail, command)


def _throttled(observation: Observation) -> set[tuple[str, str, str]]:
    """The throttled quotas, users and client ids. Kafka percent-encodes a user."""
    return {
        (quota, unquote(sample.labels.get("user", "")), sample.labels.get("clientId", ""))
        for page in observation.pages.values()
        for sample in page.samples(THROTTLE_TIME)
        if sample.value > 0 and (quota := _QUOTAS.get(sample.labels.get("resource", ""))) is not None
    }


@check(
    "cleaner-dead",
    Severity.PROBLEM,
    title="The log cleaner has stopped",
    why="Compacted topics grow without limit, __consumer_offsets among them.",
    remedy="The broker's log has the reason. Restarting the broker restarts the cleaner.",
)
def cleaner_dead(looks: Looks) -> Iterator[Fault]:
    for broker_id, page in sorted(looks.last.pages.items()):
        if (dead := page.value(DEAD_CLEANERS)) is not None and dead > 0:
            yield Fault(
                f"broker {broker_id}", f"{dead:.0f} of its cleaner's threads died.", looks.access.start_broker()
            )


@check(
    "uncleanable-partitions",
    Severity.PROBLEM,
    title="Partitions cannot be compacted",
    why="The cleaner failed on them and skips them: they grow without limit.",
    remedy="The broker's log has the reason. For a damaged log, stop the broker and delete the replica's directory; "
    "it is copied from the leader.",
)
def uncleanable_partitions(looks: Looks) -> Iterator[Fault]:
    for broker_id, page in sorted(looks.last.pages.items()):
        counts = {
            each.labels.get("logDirectory", ""): each.value for each in page.samples(UNCLEANABLE) if each.value > 0
        }
        if counts:
            where = some(
                f"{count:.0f} in {directory}" if directory else f"{count:.0f}" for directory, count in counts.items()
            )
            yield Fault(f"broker {broker_id}", f"Partitions: {where}.", looks.access.start_broker())


@check(
    "compaction-late",
    Severity.WARNING,
    title="Compaction is falling behind",
    why="Old values are kept longer than max.compaction.lag.ms allows.",
    remedy="Give the cleaner more threads.",
)
def compaction_late(looks: Looks) -> Iterator[Fault]:
    for broker_id in sorted(looks.last.pages):
        values = _values(looks, broker_id, COMPACTION_DELAY)
        if values and min(values) > 0:
            detail = f"The oldest record to be compacted is {values[-1]:.0f} s overdue."
            yield Fault(
                f"broker {broker_id}", detail, looks.access.kaspar("config", "set", "broker", "log.cleaner.threads=2")
            )
