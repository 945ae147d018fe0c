#!lua flags=no-writes
-- Repeats commands that only read. KEYS: all keys of the commands. ARGV: the commands, as a MessagePack list of lists of texts.
-- Answers their replies, in order.
local replies = {}
for i, command in ipairs(cmsgpack.unpack(ARGV[1])) do replies[i] = redis.call(unpack(command)) end
return replies
