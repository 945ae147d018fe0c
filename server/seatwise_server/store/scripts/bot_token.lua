#!lua
-- Gives a bot a new token, or with an empty hash closes the one it has.
-- KEYS: registration. ARGV: token hash, request id.
-- Answers 1 done, 2 it was, by this very request, 0 there is no such bot.
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
