#!lua
-- Writes the meta of a match once more whose record is still kept, for as long as the record is.
-- KEYS: meta, record. ARGV: creation time in microseconds, field, value, field, value, ...
-- Answers 1; or 0, and changes nothing, where there is a meta, or no record.
if redis.call('HEXISTS', KEYS[1], 'create_us') == 1 then return 0 end
local left = redis.call('PTTL', KEYS[2])
if left == -2 then return 0 end
redis.call('HSET', KEYS[1], 'create_us', ARGV[1], unpack(ARGV, 2))
if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
return 1
