"""kafka-consumer-groups: lists and describes groups, deletes them or their offsets, and resets their offsets.

`command.py` dispatches what `options.py` takes and checks. listing.py, describing.py, deleting.py and resetting.py are
its actions; scope.py says which partitions, targets.py which offsets a reset is to. tables.py has the columns that
scripts parse, and plan.py the CSV files of --export and --from-file.

As with Kafka's command, wrong options end with exit code 1, but a group that cannot be found or changed is reported on
standard output, and the exit code is 0.
"""
