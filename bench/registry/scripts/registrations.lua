-- A new schema under a new subject with every request; RUN makes the names of this run its own.
require "report"

local run, base, count = os.getenv("RUN"), os.getenv("BASE") or "", 0
local headers = { ["Content-Type"] = "application/vnd.schemaregistry.v1+json" }
local body = [[{"schema": "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"},]] ..
  [[{\"name\":\"customer\",\"type\":\"string\"},{\"name\":\"%s\",\"type\":[\"null\",\"double\"],\"default\":null}]}"}]]

function request()
  count = count + 1
  local name = "f_" .. run .. "_" .. count
  return wrk.format("POST", base .. "/subjects/" .. name .. "-value/versions", headers, string.format(body, name))
end
