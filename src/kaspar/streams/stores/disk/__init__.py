"""The state of one logical partition on disk: a cache of its changelogs.

A version of the state is named by its ends: for each store the offset after its last changelog record. LMDB holds one
version; a delta file leads from one version to the next. What is missing, damaged or of another version is read again
from the changelogs, so the state never depends on these files.

ensure.py           brings a partition to a version: the one way in
partition_state.py  one version of a partition, as a task reads it
changes.py          applies changes to LMDB, each in a transaction
deltas.py           delta files
environment.py      LMDB environments of this process, and when their files cannot be trusted
snapshot.py         one store in a read transaction
rows.py             where rows are in LMDB
"""
