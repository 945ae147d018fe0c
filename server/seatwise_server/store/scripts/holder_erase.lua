#!lua flags=allow-oom
-- Puts a pseudonym in the place of the holder of an access token. The id of the request that created it goes too, because
-- it may name the holder. KEYS: token. ARGV: holder, pseudonym.
-- Answers 1 done, 0 the token has another holder.
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'holder', ARGV[2], 'request_id', '')
return 1
