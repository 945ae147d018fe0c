#!lua flags=no-writes
-- The time on this node's clock. KEYS: any, to choose the node. Answers milliseconds.
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000)
