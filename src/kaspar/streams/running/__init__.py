"""Runs a topology on Spark, with one streaming query for each of its sub-topologies.

On the driver:

config.py             StreamsConfig: the settings of a program, with Kafka's names
topics.py             checks and creates topics, and determines the numbers of partitions
folder.py             the directory of a program under state.dir; outdated.py: which parts of it are outdated
pipeline.py           a program as a pipeline of kaspar.pipelines
predecessors.py       takes over from earlier runs of the program
query.py              the query of a sub-topology, and its batches
sources.py            the options of the data source: topics and starting offsets
purging.py            deletes processed records from repartition topics
versions.py           the version of the state with which a batch starts
reports.py            the reports of tasks; figures.py: the totals
local_stores.py       reads the stores of a running program; queryable.py: the same over HTTP

In the tasks:

shipped.py            the pickled program
map_side.py           the processing before the shuffle
rows.py, order.py     the rows of the shuffle, and the order in which they are processed
task_program.py       the processing after the shuffle, with state
stateless.py          the processing of a sub-topology without state, which needs no shuffle
outputs.py            collects output records as Arrow columns
global_tables.py      the stores of global tables
changelog_clients.py  connections to changelogs
"""
