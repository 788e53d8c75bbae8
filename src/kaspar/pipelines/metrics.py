"""The states and the progress of pipelines as Prometheus metrics."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.base.exposition import CONTENT_TYPE, Family, Kind, Sample, labels, render, select
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.web.pages import PageServer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Statuses = Sequence[PipelineStatus]


def _states(statuses: Statuses) -> Iterator[Sample]:
    for status in statuses:
        for state in State:
            yield labels(pipeline=status.name, state=state), int(status.state is state)


def _restarts(statuses: Statuses) -> Iterator[Sample]:
    for status in statuses:
        yield labels(pipeline=status.name), status.restarts


def _written(statuses: Statuses) -> Iterator[Sample]:
    for status in statuses:
        if status.progress.written is not None:
            yield labels(pipeline=status.name), status.progress.written


def _dropped(statuses: Statuses) -> Iterator[Sample]:
    for status in statuses:
        for reason, count in sorted((status.progress.dropped or {}).items()):
            yield labels(pipeline=status.name, reason=reason), count


def _gauge(name: str, help_text: str, value: Callable[[PipelineProgress], float | None]) -> Family[Statuses]:
    """A gauge with a sample for each pipeline that reports the value."""

    def samples(statuses: Statuses) -> Iterator[Sample]:
        for status in statuses:
            known = value(status.progress)
            if known is not None:
                yield labels(pipeline=status.name), known

    return Family(f"kaspar_pipeline_{name}", Kind.GAUGE, help_text, samples, ("pipeline",))


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


FAMILIES: Final[tuple[Family[Statuses], ...]] = (
    Family(
        "kaspar_pipeline_state",
        Kind.GAUGE,
        "1 for the state that the pipeline is in, 0 for all others.",
        _states,
        ("pipeline", "state"),
    ),
    Family(
        "kaspar_pipeline_restarts_total",
        Kind.COUNTER,
        "Restarts after failures, since a user started the pipeline.",
        _restarts,
        ("pipeline",),
    ),
    Family(
        "kaspar_pipeline_written_records_total",
        Kind.COUNTER,
        "Records that the pipeline has written to topics, since its last start.",
        _written,
        ("pipeline",),
    ),
    Family(
        "kaspar_pipeline_dropped_records_total",
        Kind.COUNTER,
        "Records that the pipeline has not processed, by reason (late, deserialization, ...), since its last start.",
        _dropped,
        ("pipeline", "reason"),
    ),
    _gauge(
        "input_rows_per_second",
        "The rate at which rows arrived for the last micro-batch.",
        lambda progress: progress.input_rows_per_second,
    ),
    _gauge(
        "processed_rows_per_second",
        "The rate at which the last micro-batch was processed.",
        lambda progress: progress.processed_rows_per_second,
    ),
    _gauge("lag", "Records of all source partitions beyond the last micro-batch.", lambda progress: progress.lag),
    _gauge("batch_seconds", "The duration of the last micro-batch.", lambda progress: _seconds(progress.batch_ms)),
    _gauge("state_rows", "Rows in the pipeline's state.", lambda progress: progress.state_rows),
    _gauge("state_bytes", "The size of the pipeline's state on disk.", lambda progress: progress.state_bytes),
    _gauge(
        "stream_time_seconds",
        "The event time that the pipeline has reached, in seconds since 1970.",
        lambda progress: _seconds(progress.stream_time_ms),
    ),
)


def metrics_page(address: str, statuses: Callable[[], Statuses]) -> PageServer:
    """Create the page, without starting it. Raises KasparError if the address is invalid."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise KasparError(f"the address of the metrics page must be host:port, not '{address}'")
    return PageServer(lambda: _app(statuses), host=host, port=int(port))


def _app(statuses: Callable[[], Statuses]) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def show_metrics(request: "Request") -> "Response":
        families = select(FAMILIES, frozenset(request.query_params.getlist("name[]")))
        return Response(b"".join(render(families, statuses())), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", show_metrics)])
