"""kafka-consumer-groups: lists and describes groups, deletes them or their offsets, and resets their offsets.

`command.py` dispatches the options, which `options.py` parses and checks, to an action: listing.py, describing.py,
deleting.py or resetting.py. scope.py selects the partitions of an action, targets.py the offsets of a reset. tables.py
has the columns that scripts parse, and plan.py the CSV files of --export and --from-file.

As with Kafka's command, wrong options end with exit code 1, but a group that cannot be found or changed is reported on
standard output, and the exit code is 0.
"""
