"""Pipelines in the console: the programs that a supervisor on this machine runs, read from its folder.

- `reading`: the pipelines and their queries
- `topologies`: the graph of a streams program, from its description
- `changing`: restart and stop

Nothing here imports Spark: the pipelines run in their own processes.
"""
