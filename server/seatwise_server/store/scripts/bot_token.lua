#!lua
-- Gives a bot a new token; with an empty hash, revokes the one it has.
-- KEYS: registration. ARGV: token hash, request id.
-- Answers 1 done, 2 this very request has done it before, 0 there is no such bot.
local found = redis.call('HMGET', KEYS[1], 'token_hash', 'deleted_ms')
if not found[1] or found[2] then return 0 end
if ARGV[1] == '' then
  redis.call('HSET', KEYS[1], 'revoked', '1')
  redis.call('HDEL', KEYS[1], 'rotate_id')
  return 1
end
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'rotate_id') == ARGV[2] then return 2 end
redis.call('HSET', KEYS[1], 'token_hash', ARGV[1], 'rotate_id', ARGV[2])
redis.call('HDEL', KEYS[1], 'revoked')
return 1
