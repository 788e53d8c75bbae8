"""`make bench-console`: how quick the console is on a large cluster, seen from a browser, and what open pages cost."""
