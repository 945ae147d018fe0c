#!lua flags=allow-oom
-- Notes that the bot has sat down in a match of a queue, which forgives a part of its no-shows. It may have one more
-- untaken seat from now on. If it was told in time and kept the others waiting, it may have only one again.
-- KEYS: untaken, no-shows. ARGV: match/seat, channel, bot, most taken, forgiven ms, keep ms, slow ms.
-- Answers 1, or 0 if the seat is not one of a queue, or is noted already.
local held = redis.call('HGET', KEYS[1], ARGV[1])
if not held then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
local state, offered = string.match(held, '^(%a+) (%d+)$')
local is_slow = now_ms() - offered > tonumber(ARGV[7])
local found = redis.call('HMGET', KEYS[2], 'taken', 'forgiven_at_ms')
local taken = tonumber(found[1] or 0)
local had_none_left = redis.call('HLEN', KEYS[1]) >= taken
if not is_slow then
  taken = math.min(taken + 1, tonumber(ARGV[4]))
elseif state == 'told' or state == 'left' then
  taken = 0
end
redis.call('HSET', KEYS[2], 'taken', string.format('%d', taken))
if found[2] then
  redis.call('HSET', KEYS[2], 'forgiven_at_ms', string.format('%d', found[2] - ARGV[5]))
end
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if had_none_left then redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' ' .. ARGV[1]) end
return 1
