#!lua flags=no-writes
-- Finds matches that are in all of these sets, newest first, by reading the smallest set.
-- KEYS: sets. ARGV: highest score, lowest score, the number of entries to skip, the most matches to find, the most
-- entries to read.
-- Answers {the number of entries skipped or read, '1' at the end of the set or '', the last match read and its score or
-- two empty texts, match, score, match, score, ...}.
local smallest, size = KEYS[1], nil
for _, key in ipairs(KEYS) do
  local card = #KEYS > 1 and redis.call('ZCARD', key) or 0
  if not size or card < size then smallest, size = key, card end
end
local others = {}
for _, key in ipairs(KEYS) do
  if key ~= smallest then others[#others + 1] = key end
end
local wanted, last = tonumber(ARGV[4]), ARGV[3] + ARGV[5]
local offset, found, last_name, last_score = tonumber(ARGV[3]), {}, '', ''
while #found < 2 * wanted and offset < last do
  local count = math.min(#others == 0 and wanted or 100, last - offset)
  local limits = {'BYSCORE', 'REV', 'LIMIT', offset, count, 'WITHSCORES'}
  local seen = redis.call('ZRANGE', smallest, ARGV[1], ARGV[2], unpack(limits))
  for i = 1, #seen, 2 do
    if #found == 2 * wanted then break end
    offset, last_name, last_score = offset + 1, seen[i], seen[i + 1]
    local is_in_all = true
    for _, key in ipairs(others) do is_in_all = is_in_all and redis.call('ZSCORE', key, seen[i]) end
    if is_in_all then
      found[#found + 1] = seen[i]
      found[#found + 1] = seen[i + 1]
    end
  end
  if #seen < 2 * count and #found < 2 * wanted then return {offset, '1', last_name, last_score, unpack(found)} end
end
return {offset, '', last_name, last_score, unpack(found)}
