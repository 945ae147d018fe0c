#!lua
-- Counts a watch of an owner until its lease ends, or renews that lease, within its quota of watches.
-- KEYS: owner, its watches. ARGV: watch, lease ms, the quota of owners that have none of their own; 0 for no limit.
-- Answers 1 counted, or there is no such owner; 0 the owner has as many as it may have.
local found = redis.call('HMGET', KEYS[1], 'create_ms', 'most_watches')
if not found[1] then return 1 end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%d', now))
local most = tonumber(found[2] or ARGV[3])
local is_limited = found[2] or most > 0
if is_limited and not redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('ZCARD', KEYS[2]) >= most then return 0 end
redis.call('ZADD', KEYS[2], string.format('%d', now + ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
