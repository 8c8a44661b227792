-- state: the state of the gate of an item, for the code that maintains it.
--
-- KEYS  [1] item
-- Reply state, epoch, since, revision of the sale, stock (strings, '' = none),
--       1 = built since the last Redis restart or failover | 0, revision of the stock

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'since', 'srev', 'stock')
local reply = {}
for i = 1, 5 do
  reply[i] = f[i] or ''
end
reply[6] = read_gate(KEYS[1]).stale and '0' or '1'
reply[7] = redis.call('HGET', KEYS[1], 'rev') or ''
return reply
