"""The log on disk. No asyncio here: what may block says so, and the broker calls it from a thread."""
