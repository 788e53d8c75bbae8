"""Reading topics: options, planning on the driver, and tasks that fetch record batches into Arrow columns.

batch.py, stream.py     what Spark calls, for a batch and for a streaming query
options.py              ReadOptions, parsed once on the driver and pickled to the tasks
planning.py             from offset ranges to tasks; stream_planner.py: where micro-batches start and end
offset_reader.py        the driver's client: partitions, earliest and latest offsets, sizes
task.py, fetching.py    a task: fetch ahead, walk records into columns (arrow_columns.py), decode (formats/)
"""
