#!lua flags=allow-oom
-- Confirms that a match still belongs to an owner that was silent. The confirmation is counted, so that a claim fails
-- if it was prepared before, when the owner seemed dead.
-- KEYS: fence. ARGV: epoch, owner. Answers 1 yes, 2 ALREADY (this owner has retired the match), 0 no, 3 LOST (the fence is older: Redis
-- has forgotten the claim).
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if tonumber(fence[1] or '0') < tonumber(ARGV[1]) then return 3 end
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] then return 0 end
if fence[3] then return 2 end
redis.call('HINCRBY', KEYS[1], 'confirmed', 1)
return 1
