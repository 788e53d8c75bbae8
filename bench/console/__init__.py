"""How quick the console's views are on a large cluster, seen from a browser."""
