#!lua
-- Gives an access token a new secret; with an empty hash, revokes it.
-- KEYS: token. ARGV: hash of the new secret.
-- Answers 1 done, 0 there is no such token, 2 it is revoked and gets no new secret, 3 so for one that has expired.
local found = redis.call('HMGET', KEYS[1], 'hash', 'revoke_ms', 'expire_ms')
if not found[1] then return 0 end
local now = now_ms()
if ARGV[1] ~= '' then
  if found[2] then return 2 end
  if found[3] ~= '0' and tonumber(found[3]) <= now then return 3 end
  redis.call('HSET', KEYS[1], 'hash', ARGV[1])
  return 1
end
if found[2] then return 1 end
redis.call('HSET', KEYS[1], 'revoke_ms', string.format('%d', now))
return 1
