#!lua
-- Registers a bot once. KEYS: registration. ARGV: owner, token hash, request id.
-- Answers 1 registered (also if this call was sent twice), 2 this very request has registered it before, 0 another request has, 3 the bot was deleted and
-- its name is not reused.
if redis.call('HEXISTS', KEYS[1], 'deleted_ms') == 1 then return 3 end
local made = redis.call('HMGET', KEYS[1], 'request_id', 'token_hash')
if made[1] then
  if made[2] == ARGV[2] then return 1 end
  return made[1] ~= '' and made[1] == ARGV[3] and 2 or 0
end
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token_hash', ARGV[2], 'request_id', ARGV[3], 'create_ms', now)
return 1
