"""What users install: the source distribution, the wheel, and the commands that an empty environment gets from it."""
