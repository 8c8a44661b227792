-- begin: closes the gate of an item and starts to build it anew under a higher epoch.
--
-- KEYS  [1] item   [2] holders   [3] permits
-- ARGV  [1] epoch
-- Reply 1 begun | 0 the gate has that epoch, or a higher one, already
--
-- Keeps true: an epoch is built once; while it is built nothing can be reserved.
-- The gate remembers in which life of the server it was built.

local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0')
if epoch >= tonumber(ARGV[1]) then
  return 0
end
redis.call('DEL', KEYS[2], KEYS[3])
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'gate', 'loading', 'since', now[1] * 1000, 'run', run())
return 1
