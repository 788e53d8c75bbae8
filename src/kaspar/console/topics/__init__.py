"""Topics in the console.

- `listing`: all topics, searched, sorted and paged
- `describing`: one topic with its partitions, offsets and sizes
- `changing`: creation, deletion, more partitions, and deletion of records
- `consumers`: the groups that read a topic
"""
