"""The shell around the coordinators of groups and of transactions: loading, appends, answers, timers, threads."""
