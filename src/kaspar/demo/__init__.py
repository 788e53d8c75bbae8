"""`kaspar demo`: a broker, events flowing into topics, and two streams programs on Spark, shown live.

- `run`: the command; without what Spark needs it shows the events with a consumer (`plain`)
- `events`, `producing`: trades and clicks, and how they get into topics
- `stock_statistics`, `click_enrichment`: the programs
- `programs`: both of them in one Spark session; `results`: what they have written; `live`: the view of it
- `screen`, `threads`: the terminal, and how the demo's threads end

The examples of streams programs use the programs and the events, too.
"""
