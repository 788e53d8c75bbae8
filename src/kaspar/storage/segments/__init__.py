"""One segment: its record batches, its indexes, its open files, and how a batch is found in it."""
