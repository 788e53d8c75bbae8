-- The end of every script: one line that wrk.py reads.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('REPORT {"requests": %d, "seconds": %f, "p99_ms": %f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
