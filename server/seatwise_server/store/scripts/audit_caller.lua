#!lua
-- Finds the pseudonyms of a caller and of its address, and keeps their meanings for a while. Notes the address at the caller.
-- The pseudonyms of a person that was erased just now mean nothing: a process that stood still may write of the person late.
-- KEYS: pseudonym of the person, note that the person was erased, pseudonym of the address.
-- ARGV: person or '', a fresh pseudonym, time to keep its meaning in ms. The same three of the address.
-- Then the caller as it is written if it is no person, or ''. Then the prefixes of the keys of meanings, and of the addresses of a caller.
-- Answers {caller, address} as they are written.
local function keep(key, value, fresh, ms)
  if value == '' then return '' end
  local named = redis.call('GET', key) or fresh
  redis.call('SET', key, named, 'PX', ms)
  redis.call('SET', ARGV[8] .. named, value, 'PX', ms)
  return named
end
if redis.call('EXISTS', KEYS[2]) == 1 then return {ARGV[2], ARGV[4] == '' and '' or ARGV[5]} end
local who = ARGV[1] == '' and ARGV[7] or keep(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
local address = keep(KEYS[3], ARGV[4], ARGV[5], ARGV[6])
if who ~= '' and address ~= '' then
  redis.call('SADD', ARGV[9] .. who, address)
  redis.call('PEXPIRE', ARGV[9] .. who, ARGV[3])
end
return {who, address}
