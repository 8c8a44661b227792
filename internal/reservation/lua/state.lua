-- state: how the gate of an item stands, for those who keep it.
--
-- KEYS  [1] item
-- Reply gate, epoch, since, revision of the sale, stock (strings, '' = none),
--       and whether it was built in this life of the server (1 | 0)

local f = redis.call('HMGET', KEYS[1], 'gate', 'epoch', 'since', 'srev', 'stock', 'run')
local reply = {}
for i = 1, 5 do
  reply[i] = f[i] or ''
end
reply[6] = (f[6] or '') == run() and '1' or '0'
return reply
