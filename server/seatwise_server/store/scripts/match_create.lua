#!lua
-- Creates a match's meta once, unless the match was dropped.
-- KEYS: meta, fence. ARGV: deadline in ms (may be empty), field, value, field, value, ...
-- Answers {1 created, 0 it existed already, -1 it was dropped, -2 it is too late; creation time in microseconds}.
local made = redis.call('HGET', KEYS[1], 'create_us')
if made then return {0, made} end
if redis.call('HEXISTS', KEYS[2], 'retired') == 1 then return {-1, ''} end
local time = redis.call('TIME')
if ARGV[1] ~= '' and time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[1]) then return {-2, ''} end
made = string.format('%d%06d', time[1], time[2])
redis.call('HSET', KEYS[1], 'create_us', made, unpack(ARGV, 2))
return {1, made}
