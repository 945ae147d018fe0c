#!lua
-- Counts a bot as the owner's, unless it has too many. KEYS: owner, set of its bots. ARGV: bot.
-- Answers 1 it is the owner's, 0 the owner has too many, 2 there is no such owner.
local most = redis.call('HGET', KEYS[1], 'most_bots')
if not most then return 2 end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 1 end
if redis.call('SCARD', KEYS[2]) >= tonumber(most) then return 0 end
redis.call('SADD', KEYS[2], ARGV[1])
return 1
