#!lua
-- Marks a match that is known, whoever owns it; the first mark stays.
-- KEYS: meta. ARGV: field, what is said. Answers 1, or 0 when it is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return 1
