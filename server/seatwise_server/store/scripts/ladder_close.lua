#!lua
-- Closes a ladder once: the results that its log has now are final. KEYS: ladder, places. Answers 1, or 0 if it was closed before.
local now = string.format('%d', now_ms())
if redis.call('HSETNX', KEYS[1], 'close_ms', now) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'final_results', redis.call('HLEN', KEYS[2]))
return 1
