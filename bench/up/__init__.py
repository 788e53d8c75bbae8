"""`make bench-up`: how soon `kaspar up` is ready, and what it uses when idle."""
