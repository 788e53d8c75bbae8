-- GET of the paths in the file PATHS, in random order.
require "report"

local paths = {}
for line in io.lines(os.getenv("PATHS")) do
  paths[#paths + 1] = wrk.format("GET", line)
end

function request()
  return paths[math.random(#paths)]
end
