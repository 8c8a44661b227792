-- state: the state of the gate of an item, for the code that maintains it.
--
-- KEYS  [1] item   [2] units per user of the sale
-- Reply state, epoch, since, revision of the sale, stock (strings, '' = none),
--       1 = built since the last Redis restart or failover, and in a sale with a limit
--       its units per user are there | 0, revision of the stock, opens, closes (Unix ms), total

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'since', 'srev', 'stock')
local reply = {}
for i = 1, 5 do
  reply[i] = f[i] or ''
end
local g = read_gate(KEYS[1])
local uncounted = g.sale_limit > 0 and redis.call('HGET', KEYS[2], 'epoch') ~= g.epoch
reply[6] = (g.stale or uncounted) and '0' or '1'
reply[7] = redis.call('HGET', KEYS[1], 'rev') or ''
reply[8] = g.opens and string.format('%.0f', g.opens) or ''
reply[9] = g.closes and string.format('%.0f', g.closes) or ''
reply[10] = g.total and string.format('%.0f', g.total) or ''
return reply
