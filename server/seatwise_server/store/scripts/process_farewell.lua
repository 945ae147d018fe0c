#!lua flags=allow-oom
-- A process says that it has let go of everything, so that others look at once.
-- KEYS: beat. ARGV: process, channel. Answers 1, or 0 when it is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'left', '1')
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1
