#!lua
-- Creates an owner once. KEYS: owner. ARGV: most bots, invite, request id, most matches of a bot.
-- Answers 1 created, 2 this very request has created it before, 0 another request has.
local made = redis.call('HMGET', KEYS[1], 'invite', 'request_id')
if made[1] then return made[1] == ARGV[2] and made[2] ~= '' and made[2] == ARGV[3] and 2 or 0 end
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[1], 'most_bots', ARGV[1], 'invite', ARGV[2], 'request_id', ARGV[3], 'create_ms', now, 'most_matches', ARGV[4])
return 1
