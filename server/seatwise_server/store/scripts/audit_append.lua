#!lua flags=allow-oom
-- Appends an entry to the audit log, which drops its oldest ones. KEYS: log. ARGV: seq of the last entry that the writer knows,
-- the most entries, entry. Answers 1 done, 0 the log has a newer entry.
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local seq = last and tonumber(string.match(last[1], '^%d+')) or 0
if last and last[2][2] == ARGV[3] then return 1 end
if seq ~= tonumber(ARGV[1]) then return 0 end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], string.format('%d-0', seq + 1), 'e', ARGV[3])
return 1
