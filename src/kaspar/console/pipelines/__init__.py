"""Pipelines in the console: what a supervisor of pipelines on this machine runs, read from its folder.

- `reading`: the pipelines and their queries
- `topologies`: the graph of a streams program, from its description
- `changing`: restart and stop

Nothing here imports Spark: the pipelines run in processes of their own.
"""
