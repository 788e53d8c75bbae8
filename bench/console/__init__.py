"""`make bench-console`: the speed of the console for a large cluster, seen in a browser, and the cost of open pages."""
