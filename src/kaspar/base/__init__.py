"""What every other package uses: ids, clocks, errors, logging, metrics, and the loader of the compiled core."""
