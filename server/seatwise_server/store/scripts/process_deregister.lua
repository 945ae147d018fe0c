#!lua flags=allow-oom
-- Notes and publishes that a process has given up all its matches, or is dead, so that others check at once.
-- KEYS: beat. ARGV: process, channel, '1' if it has stopped in order or 'dead'. Answers 1, or 0 if the process is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('HGET', KEYS[1], 'left') ~= '1' then redis.call('HSET', KEYS[1], 'left', ARGV[3]) end
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1
