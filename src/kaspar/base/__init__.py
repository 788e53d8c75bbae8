"""What every other package stands on: ids, clocks, errors, tasks, and the loader of the compiled core."""
