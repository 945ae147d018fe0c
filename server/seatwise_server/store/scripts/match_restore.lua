#!lua
-- Restores the meta of a match whose record is still kept.
-- KEYS: meta, record. ARGV: creation time in microseconds, field, value, field, value, ...
-- Answers 1; 0, changing nothing, if there is a meta, or no record.
if redis.call('HEXISTS', KEYS[1], 'create_us') == 1 then return 0 end
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'create_us', ARGV[1], unpack(ARGV, 2))
return 1
