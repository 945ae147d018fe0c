#!lua flags=no-writes
-- The time on this node's clock. KEYS: any, to choose the node. Answers milliseconds.
return now_ms()
