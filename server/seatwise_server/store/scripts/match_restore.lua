#!lua
-- Restores the meta of a match whose record is still kept, for as long as the record is kept.
-- KEYS: meta, record. ARGV: creation time in microseconds, field, value, field, value, ...
-- Answers 1; 0, changing nothing, if there is a meta, or no record.
if redis.call('HEXISTS', KEYS[1], 'create_us') == 1 then return 0 end
local left = redis.call('PTTL', KEYS[2])
if left == -2 then return 0 end
redis.call('HSET', KEYS[1], 'create_us', ARGV[1], unpack(ARGV, 2))
if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
return 1
