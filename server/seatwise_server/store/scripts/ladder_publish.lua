#!lua
-- Publishes a table, unless a newer one is published, or the ladder is closed and this is not its final table. KEYS: ladder. ARGV: results in it, table.
-- Answers 1, or 0 if it does not.
local shown = redis.call('HGET', KEYS[1], 'table_results')
if shown and tonumber(shown) > tonumber(ARGV[1]) then return 0 end
local final = redis.call('HGET', KEYS[1], 'final_results')
if final and (shown == final or ARGV[1] ~= final) then return 0 end
local now = string.format('%d', now_ms())
redis.call('HSET', KEYS[1], 'table_results', ARGV[1], 'table', ARGV[2], 'table_ms', now)
redis.call('HINCRBY', KEYS[1], 'table_number', 1)
return 1
