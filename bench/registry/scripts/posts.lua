-- POST of the body in the file BODY, with every request.
require "report"

local file = assert(io.open(os.getenv("BODY")))
wrk.method, wrk.body = "POST", file:read("*a")
wrk.headers["Content-Type"] = os.getenv("CONTENT_TYPE")
file:close()
