"""Runs Spark pipelines and keeps them running: each in its own process, or many in one session under a supervisor.

- `pipeline`, `statuses`: the interface of a pipeline, and its state and progress
- `runner`: the loop that runs a pipeline, in a host or standalone; `reasons`: why one failed, in a sentence
- `queries`: pipelines of plain Spark queries
- `running`, `ambient`, `standalone`: `run`, which uses the host that executes the program, or else runs standalone
- `folder`, `json_files`: the files of a supervisor; `definitions`: how commands change them
- `supervisor`: the parent process
- `host_process`, `host`, `hosted`, `programs`, `modules`, `output`, `sessions`, `jvm`: its child with the session
- `control`, `messages`: the socket between commands and the host; `looking`: statuses for commands, also without a host
- `lines`, `display`, `metrics`: output for people and for Prometheus

Nothing here depends on what pipelines do. `kaspar pipeline` (kaspar.cli) is built from these parts.
"""

from kaspar.pipelines.pipeline import Pipeline, PipelineProgress
from kaspar.pipelines.queries import QueryPipeline
from kaspar.pipelines.running import run

__all__ = ["Pipeline", "PipelineProgress", "QueryPipeline", "run"]
