"""Opening logs at startup: after a clean shutdown, and after a crash."""
