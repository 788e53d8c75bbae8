-- GET of the paths in the file PATHS, in random order.
require "report"

local requests = {}

function init() -- before that, wrk.format knows no Host
  for path in io.lines(os.getenv("PATHS")) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

function request()
  return requests[math.random(#requests)]
end
