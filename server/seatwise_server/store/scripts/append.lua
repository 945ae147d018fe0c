#!lua
-- Appends all entries of one command to a match's journal: all of them or none. Without entries it only checks.
-- Entry n of an owner at epoch e has the id n-(e - 1). A claim sets the last id of the journal to the next id of the owner before.
-- So an owner for which this script has checked the match may append single entries with XADD alone.
-- KEYS: fence, journal. ARGV: epoch, owner, first seq, and then the entries.
-- Answers 1 OK.
-- Answers 2 ALREADY if the same bytes are there, because a reply was lost.
-- Answers 0 FENCED if there is another owner, or other bytes.
-- Answers 3 LOST if the fence is older than the epoch: Redis has forgotten the claim.
-- Answers -1 - n BEHIND if the match is this owner's, but the journal ends with entry n, before the predecessor of the
-- first entry: Redis has forgotten entries.
local fence = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'retired')
if fence[1] ~= ARGV[1] or fence[2] ~= ARGV[2] or fence[3] then
  return tonumber(fence[1] or '0') < tonumber(ARGV[1]) and 3 or 0
end

local first, count, epoch = tonumber(ARGV[3]), #ARGV - 3, tonumber(ARGV[1])
local last = redis.call('XLEN', KEYS[2]) -- entries are numbered from 1 on, and none is ever deleted
if last == first - 1 then
  for i = 1, count do
    redis.call('XADD', KEYS[2], string.format('%d-%d', first + i - 1, epoch - 1), 'e', ARGV[3 + i])
  end
  return 1
end

if last < first - 1 then return -1 - last end
if count == 0 then return 1 end
if last < first + count - 1 then return 0 end
local held = redis.call('XRANGE', KEYS[2], string.format('%d', first), string.format('%d', first + count - 1))
if #held ~= count then return 0 end
for i = 1, count do
  if held[i][2][2] ~= ARGV[3 + i] then return 0 end
end
redis.call('HSET', KEYS[1], 'owner', ARGV[2]) -- changes nothing, but makes a WAIT after it wait for the replicas
return 2
