"""The runtime of the group and transaction coordinators: loading, appends, responses, timers, threads."""
