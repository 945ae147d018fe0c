#!lua flags=allow-oom
-- Notes when a retired match goes, and takes those that have gone out of the index, some at a time.
-- KEYS: index, expiry. ARGV: match, keep ms, at most so many.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[2], 'NX', string.format('%d', now + tonumber(ARGV[2])), ARGV[1])
local gone = redis.call('ZRANGE', KEYS[2], '-inf', string.format('%d', now), 'BYSCORE', 'LIMIT', 0, ARGV[3])
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('ZREM', KEYS[2], unpack(gone))
end
return #gone
