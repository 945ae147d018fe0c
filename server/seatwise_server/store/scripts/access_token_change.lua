#!lua
-- Gives an access token a new secret; with an empty hash, revokes it.
-- KEYS: token. ARGV: hash of the new secret, time for which a revoked token is kept, in ms.
-- Answers 1 done, 0 there is no such token, 2 it is revoked and gets no new secret.
local found = redis.call('HMGET', KEYS[1], 'hash', 'revoke_ms')
if not found[1] then return 0 end
if ARGV[1] ~= '' then
  if found[2] then return 2 end
  redis.call('HSET', KEYS[1], 'hash', ARGV[1])
  return 1
end
if found[2] then return 1 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'revoke_ms', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
