#!lua
-- Notes the use of a token. KEYS: registration of a bot, or access token. Answers 1 noted, 0 there is no such token.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'last_use_ms', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
