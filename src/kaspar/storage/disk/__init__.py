"""The file layer: system calls, file names, checkpoint files, and files that wait to be removed."""
