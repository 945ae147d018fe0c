#!lua flags=allow-oom
-- Writes one heartbeat. KEYS: beat, index. ARGV: process, keep ms, field, value, field, value, ... Answers the count.
local now = now_ms()
local count = redis.call('HINCRBY', KEYS[1], 'count', 1)
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('HDEL', KEYS[1], 'left')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%d', now - tonumber(ARGV[2])))
return count
