#!lua
-- Registers a bot once. KEYS: registration. ARGV: owner, token hash, request id.
-- Answers 1 registered, 2 it was, by this very request, 0 it was, by another, 3 it was deleted: its name is not given again.
if redis.call('HEXISTS', KEYS[1], 'deleted_ms') == 1 then return 3 end
local request = redis.call('HGET', KEYS[1], 'request_id')
if request then return request == ARGV[3] and 2 or 0 end
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'token_hash', ARGV[2], 'request_id', ARGV[3], 'create_ms', now)
return 1
