#!lua flags=allow-oom
-- Gives one job to another referee; the last takes the name of the one before out of the group.
-- In one script, for a name that still has jobs must not go: its jobs would go with it.
-- KEYS: stream. ARGV: group, from, to, job id. Answers 1, or 0 when the job is done.
local moved = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[4], 'JUSTID')
if ARGV[2] ~= ARGV[3] and #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return #moved
