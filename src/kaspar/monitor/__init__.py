"""What a cluster does, seen from outside: rates, consumer lag, a canary, and findings."""
