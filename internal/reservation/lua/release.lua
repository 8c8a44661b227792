-- release: gives the units of one holder back. Doing it again does nothing.
--
-- KEYS  [1] item   [2] holders   [3] lapses of the user in the sale
-- ARGV  [1] user   [2] task      [3] life of that count, ms; 0 = this is no lapse
-- Reply { 1 released | 0 nothing held under that task | -1 not loaded
--         | -2 the gate is being built, stock, revision, epoch }
--
-- Keeps true: stock + reserved = loaded stock; units come back once per task,
-- and a lapse counts with them. A gate that is being built may still write down
-- that task as a holder: the record was read before the task ended.

local f = redis.call('HMGET', KEYS[1], 'stock', 'reserved', 'rev', 'epoch', 'gate')
if f[5] == 'loading' then
  return { -2, 0, 0, tonumber(f[4] or 0) }
end
if not (f[1] and f[2] and f[3] and f[4]) then
  return { -1, 0, 0, 0 }
end
local stock, reserved, rev, epoch = tonumber(f[1]), tonumber(f[2]), tonumber(f[3]), tonumber(f[4])
local held = redis.call('HGET', KEYS[2], ARGV[1])
if not held then
  return { 0, stock, rev, epoch }
end
local task, quantity = string.match(held, '^([^|]*)|(%d+)|')
if task ~= ARGV[2] then
  return { 0, stock, rev, epoch }
end
quantity = tonumber(quantity)
stock, reserved, rev = stock + quantity, reserved - quantity, rev + 1
redis.call('HDEL', KEYS[2], ARGV[1])
if ARGV[3] ~= '0' then
  redis.call('INCR', KEYS[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
redis.call('HSET', KEYS[1], 'stock', stock, 'reserved', reserved, 'rev', rev)
return { 1, stock, rev, epoch }
