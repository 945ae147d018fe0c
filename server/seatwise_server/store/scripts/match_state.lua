#!lua
-- Writes fields of a match's meta for its owner.
-- KEYS: fence, meta. ARGV: epoch, owner, field, value, field, value, ...
-- Answers 1 OK, 0 FENCED.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 3))
return 1
