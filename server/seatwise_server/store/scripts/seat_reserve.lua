#!lua
-- Takes a seat for a bot, within the number it attends for.
-- KEYS: seats, attendance. ARGV: match/seat. Answers 1 RESERVED, 2 ALREADY, 3 FULL, 4 ABSENT.
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end
local most = redis.call('HGET', KEYS[2], 'max_matches')
if not most then return 4 end
if redis.call('SCARD', KEYS[1]) >= tonumber(most) then return 3 end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
