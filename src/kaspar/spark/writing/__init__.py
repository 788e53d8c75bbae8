"""Writing to topics: options, the columns of a write, and tasks that encode Arrow columns into record batches.

batch.py, stream.py     what Spark calls, for a batch and for a streaming query
guarantee.py            the interface between encoding and publishing; at_least_once.py is one implementation,
                        kaspar.spark.exactly_once the other
in_tasks.py             writes in the tasks of a caller's own job, behind a program of the caller
"""
