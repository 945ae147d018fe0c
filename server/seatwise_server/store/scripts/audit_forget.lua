#!lua flags=allow-oom
-- Forgets the addresses from which a caller has called. For a person it also forgets the meaning of its pseudonym, and notes that.
-- All at once: a process that dies between two steps would leave what nobody finds again.
-- KEYS: addresses of a bot; or pseudonym of a person, note that the person was erased.
-- ARGV: prefixes of the keys of meanings, of the pseudonyms of addresses, and of the addresses of a caller; time of the note in ms.
-- Answers 1.
local held = KEYS[1]
if KEYS[2] then
  local named = redis.call('GET', KEYS[1])
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[4])
  if not named then return 1 end
  redis.call('UNLINK', KEYS[1], ARGV[1] .. named)
  held = ARGV[3] .. named
end
for _, address in ipairs(redis.call('SMEMBERS', held)) do
  local meaning = redis.call('GET', ARGV[1] .. address)
  if meaning then redis.call('UNLINK', ARGV[2] .. meaning, ARGV[1] .. address) end
end
redis.call('UNLINK', held)
return 1
