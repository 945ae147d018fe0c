#!lua
-- Shows a table, unless a newer one is shown. KEYS: ladder. ARGV: results in it, table. Answers 1, or 0 when it is old.
local shown = redis.call('HGET', KEYS[1], 'table_results')
if shown and tonumber(shown) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'table_results', ARGV[1], 'table', ARGV[2])
redis.call('HINCRBY', KEYS[1], 'table_number', 1)
return 1
