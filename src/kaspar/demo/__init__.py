"""`kaspar demo`: what `kaspar up` runs, events flowing into topics, and two streams programs on Spark, shown live.

- `run`: the command; without what Spark needs it shows the events with a consumer (`plain`)
- `platform`: the brokers and services, as `kaspar up` runs them
- `events`, `producing`: trades and clicks, and how they get into topics; `shop`: a little of everything else
- `stock_statistics`, `click_enrichment`: the topologies; `program`: how `kaspar pipeline` runs them
- `programs`: both of them under a supervisor; `results`: what they have written; `live`: the view of it
- `screen`, `threads`: the terminal, and how the demo's threads end

The examples of streams programs use the programs and the events, too.
"""
