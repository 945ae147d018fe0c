#!lua
-- Gives a match a job, if it has none. KEYS: stream, markers. ARGV: match. Answers the job's id.
local open = redis.call('HGET', KEYS[2], ARGV[1])
if open then return open end
local id = redis.call('XADD', KEYS[1], '*', 'match', ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], id)
return id
