#!lua
-- Lists the unfinished jobs that a referee has taken; they stay its own.
-- KEYS: stream. ARGV: group, referee, the most jobs to list, first id. Answers {id, match, id, match, ...}.
local found = {}
for _, job in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[4], '+', ARGV[3], ARGV[2])) do
  local entry = redis.call('XRANGE', KEYS[1], job[1], job[1])[1]
  if entry then
    found[#found + 1] = entry[1]
    found[#found + 1] = entry[2][2]
  end
end
return found
