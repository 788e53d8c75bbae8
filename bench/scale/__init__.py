"""The controller with a cluster of 100 brokers and 200,000 partitions: `python -m bench.scale --help`.

The controller, the store (a ZooKeeper server) and the updates of the image are real; the brokers are only registered.
docs/scale.md contains the results and explains them.
"""
