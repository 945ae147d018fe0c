#!lua
-- Takes a seat for a bot, within the number it attends for.
-- KEYS: seats, attendance. ARGV: match/seat, when it is too late in ms (may be absent).
-- Answers 1 RESERVED, 2 ALREADY, 3 FULL, 4 ABSENT, 5 LATE.
local time = redis.call('TIME')
local is_late = ARGV[2] and time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[2])
if is_late then return 5 end
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 2 end
local most = redis.call('HGET', KEYS[2], 'max_matches')
if not most then return 4 end
if redis.call('SCARD', KEYS[1]) >= tonumber(most) then return 3 end
redis.call('SADD', KEYS[1], ARGV[1])
return 1
