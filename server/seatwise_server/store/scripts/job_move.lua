#!lua flags=allow-oom
-- Moves one job to another referee; after the last one, removes the old referee from the group.
-- Both are one script, because the removal of a referee that still has jobs would remove its jobs too.
-- KEYS: stream. ARGV: group, from, to, job id. Answers 1, or 0 if the job is done.
local moved = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[3], 0, ARGV[4], 'JUSTID')
if ARGV[2] ~= ARGV[3] and #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return #moved
