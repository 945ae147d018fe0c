#!lua
-- Takes one entry off the queue, whatever its place, and notes it as a proposal of the same name.
-- KEYS: waiting, seating. ARGV: name. Answers the note, or nil if another lobby was first.
local since = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not since then return false end
local note = string.format('%d %s %s', now_ms(), since, ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], note)
return note
