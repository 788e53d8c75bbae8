"""Running a topology on Spark: one streaming query for each of its sub-topologies.

On the driver:

config.py             StreamsConfig: the settings of a program, with Kafka's names
topics.py             which topics there must be, and with how many partitions
folder.py             what a program keeps under state.dir
pipeline.py           a program as a pipeline of kaspar.pipelines
query.py              the query of a sub-topology, and its batches
sources.py            what it reads, as options of the data source
versions.py           which version of the state a batch begins with
reports.py            what tasks report; figures.py: what is counted of it
local_stores.py       the stores of a running program; queryable.py: the same over HTTP

In the tasks:

shipped.py            how the program reaches Spark's workers
map_side.py           before the shuffle
rows.py, order.py     what passes the shuffle, and in which order it is processed
task_program.py       behind the shuffle: processes partitions, and writes
stateless.py          a sub-topology without state, which needs no shuffle
outputs.py            what is written, as Arrow columns
global_tables.py      tables that every task has as a whole
changelog_clients.py  connections to changelogs
"""
