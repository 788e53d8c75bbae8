"""The state of one logical partition on disk: a cache of its changelogs.

A version of the state is named by its ends: for each store, the offset after its last changelog record. LMDB holds one
version; a delta file leads from one version to the next. State that is missing, damaged or of another version is read
again from the changelogs, so correctness never depends on these files.

ensure.py           brings a partition to a version: the entry point
partition_state.py  one version of a partition, for a task
changes.py          applies changes to LMDB, each in a transaction
deltas.py           delta files
environment.py      the LMDB environment of a partition; opened.py: the environments that this process has open
boot_mark.py        whether the files survived the last shutdown of the machine
snapshot.py         one store in a read transaction
rows.py             the keys of rows in LMDB
size.py             the disk usage of a partition
"""
