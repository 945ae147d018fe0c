#!lua
-- Adds a point to a ladder's history, unless the last one is too new. Where there are too many, every second one of the older half
-- goes. KEYS: times, points. ARGV: least ms between two, at most so many, point.
-- Answers 1, or 0 when the last one is too new.
local now = now_ms()
local last = redis.call('ZRANGE', KEYS[1], -1, -1)[1]
if last and now - last < tonumber(ARGV[1]) then return 0 end
local name = string.format('%d', now)
redis.call('ZADD', KEYS[1], name, name)
redis.call('HSET', KEYS[2], name, ARGV[3])
if redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[2]) then return 1 end
local older = redis.call('ZRANGE', KEYS[1], 0, ARGV[2] / 2 - 1)
for i = 2, #older, 2 do
  redis.call('ZREM', KEYS[1], older[i])
  redis.call('HDEL', KEYS[2], older[i])
end
return 1
