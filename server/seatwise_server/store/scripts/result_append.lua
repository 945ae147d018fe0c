#!lua flags=allow-oom
-- Appends a result to a log, unless its match is there already. KEYS: log, places. ARGV: match, result.
-- Answers its place, from 1.
local place = redis.call('HGET', KEYS[2], ARGV[1])
if place then return tonumber(place) end
place = redis.call('HLEN', KEYS[2]) + 1
local now = string.format('%d', now_ms())
redis.call('XADD', KEYS[1], string.format('%d-0', place), 'r', ARGV[2], 't', now)
redis.call('HSET', KEYS[2], ARGV[1], place)
return place
