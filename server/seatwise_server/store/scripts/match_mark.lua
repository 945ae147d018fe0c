#!lua
-- Marks an existing match, whatever its owner; the first mark stays.
-- KEYS: meta. ARGV: field, text. Answers 1, or 0 if the match is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
return 1
