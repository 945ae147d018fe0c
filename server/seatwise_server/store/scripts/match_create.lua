#!lua
-- Creates a match's meta once.
-- KEYS: meta. ARGV: field, value, field, value, ...
-- Answers {1 created or 0 it was there, creation time in microseconds}.
local made = redis.call('HGET', KEYS[1], 'create_us')
if made then return {0, made} end
local time = redis.call('TIME')
made = string.format('%d%06d', time[1], time[2])
redis.call('HSET', KEYS[1], 'create_us', made, unpack(ARGV))
return {1, made}
