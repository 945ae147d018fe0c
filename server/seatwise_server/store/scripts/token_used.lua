#!lua
-- Notes the use of a token. KEYS: registration of a bot, or access token. Answers 1 noted, 0 there is no such token.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'last_use_ms', string.format('%d', now_ms()))
return 1
