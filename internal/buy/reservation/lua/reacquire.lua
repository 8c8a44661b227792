-- reacquire: reserves units for an order that was paid after it had expired, or for a
-- task whose gate was lost before its order was written.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
-- ARGV  [1] user   [2] task of the new reservation   [3] quantity   [4] task of the
--       former reservation   [5] idempotency key, '' = none
-- Reply { 1 reserved | 2 reserved before for this task | 0 fewer available
--         | -1 no gate | -2 the gate is being built or stale, or the former
--         reservation is not released yet, or the units per user are of another epoch
--         | -3 the user has a reservation for another order | -4 the user's reservations
--         leave too little of the limit of the sale, stock, revision, epoch }
--
-- Invariant: stock + reserved = total; units are taken once per task. The window and
-- the state of the gate are not checked: the buyer was admitted before.

local g = read_gate(KEYS[1])
if not g.there then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(g.epoch)
if g.state == 'loading' or not g.loaded then
  return { -2, 0, 0, epoch }
end
local quantity, record = tonumber(ARGV[3]), redis.call('HGET', KEYS[2], ARGV[1])
if record then
  local task = string.match(record, '^[^|]*')
  if task == ARGV[2] then
    return { 2, g.stock, g.rev, epoch }
  end
  return { task == ARGV[4] and -2 or -3, g.stock, g.rev, epoch }
end
if g.sale_limit > 0 then
  local units = units_in_sale(KEYS[3], g.epoch, ARGV[1])
  if not units then
    return { -2, 0, 0, epoch }
  end
  if units + quantity > g.sale_limit then
    return { -4, g.stock, g.rev, epoch }
  end
end
if g.stock < quantity then
  return { 0, g.stock, g.rev, epoch }
end
local stock, reserved, rev = g.stock - quantity, g.reserved + quantity, g.rev + 1
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. '|' .. quantity .. '|' .. string.format('%.0f', redis_time()) .. '|' .. ARGV[5])
redis.call('HSET', KEYS[1], 'stock', stock, 'reserved', reserved, 'rev', rev)
if ARGV[5] ~= '' then
  redis.call('HINCRBY', KEYS[1], 'taken', 1) -- caches read the accepted keys again
end
if g.sale_limit > 0 then
  add_units(KEYS[3], g.epoch, ARGV[1], quantity)
end
return { 1, stock, rev, epoch }
