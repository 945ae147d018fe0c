#!lua
-- Closes a ladder once: the results that its log has now are final. KEYS: ladder, places. Answers 1, or 0 if it was closed before.
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
if redis.call('HSETNX', KEYS[1], 'close_ms', now) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'final_results', redis.call('HLEN', KEYS[2]))
return 1
