#!lua flags=allow-oom
-- Gives all jobs of one referee to another; the last ones take the name of the first out of the group.
-- In one script, so that of two claimers one finds nothing left.
-- KEYS: stream. ARGV: group, from, to, at most so many. Answers the jobs as XCLAIM does.
local held = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4], ARGV[2])
local ids = {}
for i, job in ipairs(held) do ids[i] = job[1] end
local jobs = {}
if #ids > 0 then
  local command = {'XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0}
  for _, id in ipairs(ids) do command[#command + 1] = id end
  jobs = redis.call(unpack(command))
end
if #ids < tonumber(ARGV[4]) then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2]) end
return jobs
