#!lua
-- Writes the state of a match for its owner. KEYS: fence, meta. ARGV: epoch, owner, state.
-- Answers 1 OK, 0 FENCED.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then return 0 end
redis.call('HSET', KEYS[2], 'state', ARGV[3])
if ARGV[3] == 'RUNNING' then
  redis.call('HSETNX', KEYS[2], 'start_ms', string.format('%d', now_ms()))
end
return 1
