"""`make bench-up`: how soon `kaspar up` is ready, and what it takes while nobody uses it."""
