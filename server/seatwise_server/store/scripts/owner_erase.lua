#!lua flags=allow-oom
-- Removes the name of an owner from a bot. KEYS: registration. ARGV: owner. Answers 1 removed, 0 the bot has another owner.
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', '')
return 1
