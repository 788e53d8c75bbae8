-- GET of the paths in the file PATHS, in random order.
require "report"

local requests = {}

function init(args)
  wrk.init(args) -- sets the header Host
  for path in io.lines(os.getenv("PATHS")) do
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

function request()
  return requests[math.random(#requests)]
end
