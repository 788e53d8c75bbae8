"""Running a topology on Spark: one streaming query for each of its sub-topologies.

config.py          StreamsConfig: the settings of a program, with Kafka's names
topics.py          which topics there must be, and with how many partitions
query.py           the streaming query of a sub-topology: its batches, on the driver
versions.py        which version of the state each batch begins with
shipped.py         how the program reaches Spark's workers
map_side.py        in a task before the shuffle
rows.py, order.py  what passes the shuffle, and in which order it is processed
task_program.py    in a task behind the shuffle: processes its partitions, and writes
outputs.py         what a task writes, collected into Arrow columns
queryable.py       the contents of stores over HTTP
"""
