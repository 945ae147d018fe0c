#!lua flags=allow-oom
-- Puts a match that is not over into the set of the state that its meta will have next.
-- KEYS: set of the matches that are not over, set of the state. ARGV: match.
-- Answers 1, or 0 if it is not in the first set.
local create_us = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not create_us then return 0 end
redis.call('ZADD', KEYS[2], create_us, ARGV[1])
return 1
