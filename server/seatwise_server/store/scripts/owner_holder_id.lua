#!lua
-- Finds the id by which names of bots are an owner's. KEYS: owner. ARGV: the id to give it if it has none.
-- Answers the id; false if there is no such owner.
if redis.call('HEXISTS', KEYS[1], 'create_ms') == 0 then return false end
redis.call('HSETNX', KEYS[1], 'holder_id', ARGV[1])
return redis.call('HGET', KEYS[1], 'holder_id')
