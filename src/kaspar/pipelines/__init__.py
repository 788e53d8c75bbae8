"""Runs Spark pipelines and keeps them running: by themselves, or many of them in one session under a supervisor.

- `pipeline`, `statuses`: what a pipeline is, and what is reported of it
- `runner`: the loop that runs one, wherever it is; `reasons`: why one failed, in a sentence
- `queries`: pipelines of plain Spark queries
- `running`, `ambient`, `standalone`: `run`, which finds the host that executes the program, or runs the pipeline itself
- `folder`, `json_files`: the files of a supervisor; `definitions`: how commands change them
- `supervisor`: the parent process
- `host_process`, `host`, `hosted`, `programs`, `modules`, `output`, `sessions`, `jvm`: its child, which has the session
- `control`, `messages`: the socket between commands and the host; `looking`: what they see when no host runs
- `lines`, `display`, `metrics`: what people and Prometheus see

It knows nothing of what pipelines do. `kaspar pipeline` (kaspar.cli) is built from these parts.
"""

from kaspar.pipelines.pipeline import Pipeline, PipelineProgress
from kaspar.pipelines.queries import QueryPipeline
from kaspar.pipelines.running import run

__all__ = ["Pipeline", "PipelineProgress", "QueryPipeline", "run"]
