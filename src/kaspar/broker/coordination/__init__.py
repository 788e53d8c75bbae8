"""The runtime of the coordinators of groups and of transactions: loading, appends, responses, timers, threads."""
