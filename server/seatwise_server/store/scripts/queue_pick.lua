#!lua
-- Takes one entry off the queue, whatever its place, and notes it as a proposal of the same name.
-- KEYS: waiting, seating. ARGV: name. Answers the note, or nil if another lobby was first.
local since = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not since then return false end
local time = redis.call('TIME')
local note = string.format('%d %s %s', time[1] * 1000 + math.floor(time[2] / 1000), since, ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], note)
return note
