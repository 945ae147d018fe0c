#!lua
-- Creates a match's meta once, unless the match has been dropped.
-- KEYS: meta, fence. ARGV: field, value, field, value, ...
-- Answers {1 created, 0 it was there, -1 it has been dropped, creation time in microseconds}.
local made = redis.call('HGET', KEYS[1], 'create_us')
if made then return {0, made} end
if redis.call('HEXISTS', KEYS[2], 'retired') == 1 then return {-1, ''} end
local time = redis.call('TIME')
made = string.format('%d%06d', time[1], time[2])
redis.call('HSET', KEYS[1], 'create_us', made, unpack(ARGV))
return {1, made}
