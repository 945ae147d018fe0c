#!lua
-- Puts a match into the index, once. Where an earlier match of that name was there, whose record has gone, its place
-- and its time are not this match's.
-- KEYS: index, expiry. ARGV: match, creation time in microseconds.
local listed = redis.call('ZSCORE', KEYS[1], ARGV[1])
if listed and tonumber(listed) == tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
