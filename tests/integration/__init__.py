"""Real broker processes and commands: starting, stopping, settings, monitoring, data folders."""
