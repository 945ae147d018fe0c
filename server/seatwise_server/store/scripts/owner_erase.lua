#!lua flags=allow-oom
-- Removes the name of an owner from a bot, and the id of the request that registered it, which may hold that name. KEYS: registration. ARGV: owner. Answers 1 removed, 0 the bot has another owner.
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', '', 'request_id', '')
return 1
