#!lua
-- Gives a match a job, if it has none.
-- KEYS: stream, markers, streams whose jobs share the tables of this one, itself among them (optional).
-- ARGV: match, prefix of the ids of this stream, deadline for a new job in ms, tables of these streams (both optional).
-- Answers the job's id, 0 if all tables have their job, or nil if it is too late.
local open = redis.call('HGET', KEYS[2], ARGV[1])
if open then return open end
local is_late = ARGV[3] and now_ms() >= tonumber(ARGV[3])
if is_late then return false end
if ARGV[4] then
  local unfinished = 0
  for i = 3, #KEYS do unfinished = unfinished + redis.call('XLEN', KEYS[i]) end
  if unfinished >= tonumber(ARGV[4]) then return 0 end
end
local id = ARGV[2] .. redis.call('XADD', KEYS[1], '*', 'match', ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], id)
return id
