#!lua
-- Creates an invite once. KEYS: invite. ARGV: hash of the secret, most bots, uses, lifetime in ms, most matches of a bot.
-- Answers 1 created (also if this call was sent twice), 2 a request with this id has created it before.
local hash = redis.call('HGET', KEYS[1], 'hash')
if hash then return hash == ARGV[1] and 1 or 2 end
local now = now_ms()
redis.call('HSET', KEYS[1], 'hash', ARGV[1], 'most_bots', ARGV[2], 'uses', ARGV[3], 'used', '0',
  'create_ms', string.format('%d', now), 'expire_ms', string.format('%d', now + tonumber(ARGV[4])), 'revoke_ms', '0', 'most_matches', ARGV[5])
return 1
