#!lua
-- Gives a bot a new token; with an empty hash, revokes the one it has.
-- KEYS: registration. ARGV: token hash, request id, '1' if an owner asks and not an operator.
-- Answers 1 done, 2 this very request has done it before, 3 an operator has revoked the token and an owner asks for another, 0 there is no such bot.
local found = redis.call('HMGET', KEYS[1], 'token_hash', 'deleted_ms', 'revoked')
if not found[1] or found[2] then return 0 end
if ARGV[1] == '' then
  if ARGV[3] ~= '1' then
    redis.call('HSET', KEYS[1], 'revoked', 'operator')
  elseif not found[3] then
    redis.call('HSET', KEYS[1], 'revoked', '1')
  end
  redis.call('HDEL', KEYS[1], 'rotate_id')
  return 1
end
if found[3] == 'operator' and ARGV[3] == '1' then return 3 end
if ARGV[2] ~= '' and redis.call('HGET', KEYS[1], 'rotate_id') == ARGV[2] then return 2 end
redis.call('HSET', KEYS[1], 'token_hash', ARGV[1], 'rotate_id', ARGV[2])
redis.call('HDEL', KEYS[1], 'revoked')
return 1
