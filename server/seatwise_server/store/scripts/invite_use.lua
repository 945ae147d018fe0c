#!lua
-- Uses an invite once for each owner. KEYS: invite. ARGV: hash of the owner's name.
-- Answers 1 used (also if this owner has used it before), 0 it is used up, or cannot be used any more.
local found = redis.call('HMGET', KEYS[1], 'uses', 'used', 'expire_ms', 'revoke_ms')
if not found[1] then return 0 end
if redis.call('HEXISTS', KEYS[1], 'by:' .. ARGV[1]) == 1 then return 1 end
local now = now_ms()
if tonumber(found[2]) >= tonumber(found[1]) or tonumber(found[3]) <= now or found[4] ~= '0' then return 0 end
redis.call('HINCRBY', KEYS[1], 'used', 1)
redis.call('HSET', KEYS[1], 'by:' .. ARGV[1], '1')
return 1
