#!lua
-- Gives a match back to the owner whose claim Redis has forgotten, with an epoch that no owner has had.
-- As in `claim.lua`, the journal takes no more entries of any owner before.
-- KEYS: fence, journal. ARGV: owner, the epoch that it had.
-- Answers {1, epoch} reclaimed, {0, epoch, owner} this claim still exists or another owner's does, {-1} the match is
-- retired.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[3] then return {-1} end
local epoch = tonumber(fence[1] or '0')
local held = tonumber(ARGV[2])
if epoch < held then
  redis.call('HSET', KEYS[1], 'epoch', string.format('%d', held + 1), 'owner', ARGV[1])
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  if newest then
    redis.call('XSETID', KEYS[2], string.format('%d-%d', string.match(newest[1], '^%d+') + 1, held - 1))
  end
  return {1, held + 1}
end
if epoch == held + 1 and fence[2] == ARGV[1] then return {1, epoch} end
return {0, epoch, fence[2] or ''}
