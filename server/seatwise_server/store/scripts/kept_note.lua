#!lua
-- Schedules the removal of a key. KEYS: time of keeping, other keys to remove. ARGV: key, for how many ms it is kept.
local now = tonumber(redis.call('HGET', KEYS[1], 'now') or now_ms())
return redis.call('ZADD', KEYS[2], string.format('%d', now + tonumber(ARGV[2])), ARGV[1])
