"""The exactly-once guarantee of Spark writes: connects kaspar.exactly_once to Spark's tasks and driver.

guarantee.py        ExactlyOnce, the Guarantee of a write; asks Spark which query and batch a task belongs to
task.py, driver.py  what runs in a task, and what publishes the tasks' messages on the driver
foreach_batch.py    batch() and write_batch(): all writes of one batch share a decision
"""
