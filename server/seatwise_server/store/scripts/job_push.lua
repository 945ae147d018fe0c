#!lua
-- Gives a match a job, if it has none.
-- KEYS: stream, markers. ARGV: match, prefix of the ids of this stream, deadline for a new job in ms (optional).
-- Answers the job's id, or nil if it is too late.
local open = redis.call('HGET', KEYS[2], ARGV[1])
if open then return open end
local time = redis.call('TIME')
local is_late = ARGV[3] and time[1] * 1000 + math.floor(time[2] / 1000) >= tonumber(ARGV[3])
if is_late then return false end
local id = ARGV[2] .. redis.call('XADD', KEYS[1], '*', 'match', ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], id)
return id
