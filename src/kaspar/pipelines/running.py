"""Runs a program's pipeline: in the host that executes the program, or else standalone."""

from collections.abc import Mapping

from kaspar.base.errors import KasparError
from kaspar.pipelines.ambient import HOST, is_hosting
from kaspar.pipelines.folder import SessionPlan
from kaspar.pipelines.pipeline import Pipeline


def run(
    pipeline: Pipeline,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    metrics: str | None = None,
) -> None:
    """Run a pipeline until it is stopped or has finished. Queries that fail after the start are restarted.

    Under `kaspar pipeline run`, the supervisor's session is used, and the supervisor stops the pipeline. Otherwise a
    session is created (`master`: a Spark master, by default the variable KASPAR_SPARK_MASTER, or else all cores of this
    machine; `config`: Spark's settings), SIGINT and SIGTERM stop the pipeline after its micro-batch, a second SIGINT
    stops it at once, and `metrics` is host:port of a page for Prometheus.
    """
    host = HOST.get()
    if host is not None:
        host.run(pipeline)
        return
    if is_hosting():
        raise KasparError(
            f"the pipeline {pipeline.name} was started in a thread that its program created: under 'kaspar pipeline "
            "run', call run() once, in the main thread of the program"
        )
    from kaspar.pipelines.standalone import run_alone

    run_alone(pipeline, SessionPlan(master, dict(config or {})), metrics=metrics)
