#!lua
-- Enters a queue, once. KEYS: waiting. ARGV: bot. Answers since when it waits, in milliseconds.
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], 'NX', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)), ARGV[1])
return redis.call('ZSCORE', KEYS[1], ARGV[1])
