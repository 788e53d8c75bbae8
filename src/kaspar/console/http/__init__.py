"""The console's HTTP: how resources are declared, what every request passes, and the files of the page.

- `endpoint`: declarations of reads and changes, and the `Call` that their handlers get
- `guard`: the checks that every request passes before a handler sees it, and the headers of every response
- `errors`: what goes wrong, as a status and a sentence
- `sharing`: reads that callers of one identity share
- `events`: server-sent events
- `audit`: a line for each change
- `assets`: the files of the page
"""
