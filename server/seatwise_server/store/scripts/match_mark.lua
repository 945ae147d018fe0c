#!lua
-- Marks a match that is known, whoever owns it. KEYS: meta. ARGV: field. Answers 1, or 0 when it is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], '1')
return 1
