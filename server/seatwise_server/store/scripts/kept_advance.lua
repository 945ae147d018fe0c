#!lua flags=allow-oom
-- Lets the time pass by which things are kept. It passes as Redis's clock does, but never back, and not while the clock leaps.
-- KEYS: time of keeping, matches to remove, other keys to remove. ARGV: the longest step in ms, the most names to list of each.
-- Answers {Redis's clock in ms, how far it has leapt in ms, {matches that are due}, {other keys that are due}}.
local clock = now_ms()
local kept = redis.call('HMGET', KEYS[1], 'now', 'clock')
local now, step = tonumber(kept[1] or clock), clock - tonumber(kept[2] or clock)
local is_leap = math.abs(step) > tonumber(ARGV[1])
if not is_leap then now = now + math.max(0, step) end
if is_leap or step >= 0 then
  redis.call('HSET', KEYS[1], 'now', string.format('%d', now), 'clock', string.format('%d', clock))
end
local found = {clock, is_leap and step or 0}
for i = 2, 3 do
  found[i + 1] = redis.call('ZRANGE', KEYS[i], '-inf', string.format('%d', now), 'BYSCORE', 'LIMIT', 0, ARGV[2])
end
return found
