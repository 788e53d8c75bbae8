"""The figures of running queries as Prometheus metrics."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kaspar.base.exposition import CONTENT_TYPE, Family, Kind, Sample, labels, render, summary_samples
from kaspar.spark.watching.figures import BatchReport, QueryFigures

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Queries = Mapping[str, QueryFigures]


def _each(value: Callable[[QueryFigures], float]) -> Callable[[Queries], Iterator[Sample]]:
    def samples(queries: Queries) -> Iterator[Sample]:
        for figures in list(queries.values()):
            yield labels(query=figures.name), value(figures)

    return samples


def _last(value: Callable[[BatchReport], float | None]) -> Callable[[Queries], Iterator[Sample]]:
    """Samples of the last micro-batch, for each query that has one in which the value is known."""

    def samples(queries: Queries) -> Iterator[Sample]:
        for figures in list(queries.values()):
            known = value(figures.last) if figures.last is not None else None
            if known is not None:
                yield labels(query=figures.name), known

    return samples


def _lags(queries: Queries) -> Iterator[Sample]:
    for figures in list(queries.values()):
        if figures.last is not None and figures.last.lag is not None:
            for where, behind in sorted(figures.last.lag.items()):
                yield labels(query=figures.name, topic=where.topic, partition=where.partition), behind


def _durations(queries: Queries) -> Iterator[Sample]:
    for figures in list(queries.values()):
        yield from summary_samples(figures.batch_seconds.distribution(), labels(query=figures.name))


FAMILIES: Final[tuple[Family[Queries], ...]] = (
    Family(
        "kaspar_spark_query_running",
        Kind.GAUGE,
        "1 while the query is running, 0 after it has ended.",
        _each(lambda figures: int(figures.running)),
        ("query",),
    ),
    Family(
        "kaspar_spark_query_rows_total",
        Kind.COUNTER,
        "Rows that the query has read since its start.",
        _each(lambda figures: figures.rows),
        ("query",),
    ),
    Family(
        "kaspar_spark_query_batches_total",
        Kind.COUNTER,
        "Micro-batches that the query has completed since its start.",
        _each(lambda figures: figures.batches),
        ("query",),
    ),
    Family(
        "kaspar_spark_query_batch_seconds",
        Kind.SUMMARY,
        "The duration of a micro-batch.",
        _durations,
        ("query",),
    ),
    Family(
        "kaspar_spark_query_input_rows_per_second",
        Kind.GAUGE,
        "The rate at which rows arrived for the last micro-batch.",
        _last(lambda report: report.input_rows_per_second),
        ("query",),
    ),
    Family(
        "kaspar_spark_query_processed_rows_per_second",
        Kind.GAUGE,
        "The rate at which the last micro-batch was processed.",
        _last(lambda report: report.processed_rows_per_second),
        ("query",),
    ),
    Family(
        "kaspar_spark_query_lag",
        Kind.GAUGE,
        "Records of a partition beyond the last micro-batch.",
        _lags,
        ("query", "topic", "partition"),
    ),
    Family(
        "kaspar_spark_query_state_rows",
        Kind.GAUGE,
        "Rows in the query's state.",
        _last(lambda report: report.state_rows),
        ("query",),
    ),
)


def make_app(queries: Queries) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def show_metrics(request: "Request") -> "Response":
        return Response(b"".join(render(FAMILIES, queries)), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", show_metrics)])
