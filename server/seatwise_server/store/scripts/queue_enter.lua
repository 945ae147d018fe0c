#!lua
-- Enters a queue, once. KEYS: waiting. ARGV: bot. Answers since when it waits, in milliseconds.
redis.call('ZADD', KEYS[1], 'NX', string.format('%d', now_ms()), ARGV[1])
return redis.call('ZSCORE', KEYS[1], ARGV[1])
