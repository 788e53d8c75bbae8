"""kafka-reassign-partitions: moves partitions between brokers, and replicas between the log directories of a broker.

`command.py` parses the options and calls one action: generating.py, executing.py, verifying.py or cancelling.py. These
share plan.py (the JSON files), throttles.py and log_dir_moves.py.
"""
