#!lua
-- Creates an access token once. KEYS: token. ARGV: holder, scopes, hash of the secret, request id, lifetime in ms (0: for ever),
-- the time after which it is forgotten in ms (0: it stays until it is removed).
-- Answers 1 created, 2 this very request has created it before, 0 another request has.
local found = redis.call('HMGET', KEYS[1], 'request_id', 'hash')
local request = found[1]
if found[2] == ARGV[3] then return 1 end
if request then return request ~= '' and request == ARGV[4] and 2 or 0 end
local now = now_ms()
local expires = ARGV[5] == '0' and 0 or now + tonumber(ARGV[5])
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'scopes', ARGV[2], 'hash', ARGV[3], 'request_id', ARGV[4],
  'create_ms', string.format('%d', now), 'expire_ms', string.format('%d', expires))
if ARGV[6] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[6]) end
return 1
