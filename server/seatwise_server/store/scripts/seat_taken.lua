#!lua flags=allow-oom
-- The bot has sat down in a match of a queue: it may have one untaken seat more, and some of its no-shows is forgiven.
-- KEYS: untaken, no-shows. ARGV: match/seat, channel, bot, most taken, forgiven ms, keep ms.
-- Answers 1, or 0 when the seat is not one of a queue, or is noted already.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
local found = redis.call('HMGET', KEYS[2], 'taken', 'forgiven_at_ms')
local taken = tonumber(found[1] or 0)
local had_none_left = redis.call('HLEN', KEYS[1]) >= taken
redis.call('HSET', KEYS[2], 'taken', string.format('%d', math.min(taken + 1, tonumber(ARGV[4]))))
if found[2] then
  redis.call('HSET', KEYS[2], 'forgiven_at_ms', string.format('%d', found[2] - ARGV[5]))
end
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if had_none_left then redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' ' .. ARGV[1]) end
return 1
