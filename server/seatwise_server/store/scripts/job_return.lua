#!lua
-- Puts a job back for any other referee, behind those that wait.
-- KEYS: stream, markers. ARGV: group, id in the stream, prefix of the new job's id.
-- Answers 1, or 0 if it was finished before.
local job = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
if not job then return 0 end
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], job[2][2], ARGV[3] .. redis.call('XADD', KEYS[1], '*', 'match', job[2][2]))
return 1
