#!lua flags=allow-oom
-- Finishes a job. KEYS: stream, markers. ARGV: group, job id. Answers 1, or 0 if it was finished before.
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
local job = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if not job then return 0 end
redis.call('XDEL', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], job[2][2])
return 1
