"""Consumer lag as Burrow evaluates it: rules, windows of commits, and the rounds that read offsets."""
