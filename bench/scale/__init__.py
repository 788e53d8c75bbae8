"""What a cluster of 100 brokers and 200,000 partitions asks of its controller: `python -m bench.scale --help`.

The controller, the store (a ZooKeeper server) and the updates of the image are the real ones; the brokers are only
registered. docs/scale.md holds the results and what they mean.
"""
