"""`kaspar demo`: runs `kaspar up`, produces events to topics, and shows live how two streams programs process them.

- `run`: the command; if Spark cannot run, a consumer reads and shows the events instead (`plain`)
- `platform`: the brokers and services, as `kaspar up` runs them
- `events`, `producing`: generates trades and clicks, and produces them to topics; `shop`: other traffic
- `stock_statistics`, `click_enrichment`: the topologies; `program`: how `kaspar pipeline` runs them
- `programs`: runs both programs under a supervisor; `results`: their output; `live`: shows it on the screen
- `screen`, `threads`: the terminal, and the end of the demo's threads

The examples of streams programs also use these programs and events.
"""
