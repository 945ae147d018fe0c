#!lua flags=allow-oom
-- Deletes a bot, and keeps its name so that no other bot can get it. The hash of its token stays, so that a holder of
-- the token is told that it was revoked. The owner is removed. Until the bot's stream ends, no seat is reserved for it.
-- KEYS: registration, attendance. Answers 1 done, 2 it was deleted before, 0 there is no such bot.
local found = redis.call('HMGET', KEYS[1], 'token_hash', 'deleted_ms')
if not found[1] then return 0 end
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[2], 'max_matches', '0') end
if found[2] then return 2 end
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[1], 'deleted_ms', now, 'revoked', '1', 'owner', '')
redis.call('HDEL', KEYS[1], 'request_id', 'rotate_id')
return 1
