#!lua
-- Moves a match's fence to a new owner, if it is at the epoch that the claim expects.
-- The journal takes no more entries of the owner before: its next id is used up (see `append.lua`).
-- KEYS: fence, journal. ARGV: owner, expected epoch (0: no fence yet), expected confirmations (empty: any), "soon" or "late" if
-- the previous owner has died (so long after its claim), else empty.
-- Answers {1, epoch} claimed, {0, epoch, owner} another owner has it, {-1} the match is retired.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired', 'confirmed')
if fence[3] then return {-1} end

local epoch = tonumber(fence[1] or '0')
local expected = tonumber(ARGV[2])
if epoch == expected and (ARGV[3] == '' or ARGV[3] == (fence[4] or '0')) then
  local now = string.format('%d', now_ms())
  redis.call('HSET', KEYS[1], 'epoch', string.format('%d', expected + 1), 'owner', ARGV[1], 'since_ms', now)
  local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  if newest and expected > 0 then
    redis.call('XSETID', KEYS[2], string.format('%d-%d', string.match(newest[1], '^%d+') + 1, expected - 1))
  end
  if ARGV[4] ~= '' then redis.call('HINCRBY', KEYS[1], 'deaths', 1) end
  if ARGV[4] == 'late' then redis.call('HINCRBY', KEYS[1], 'late', 1) end
  return {1, expected + 1}
end
if epoch == expected + 1 and fence[2] == ARGV[1] then return {1, epoch} end
return {0, epoch, fence[2] or ''}
