-- reacquire: reserves units for an order that was paid after it had expired, or for a
-- task whose gate was lost before its order was written.
--
-- KEYS  [1] item   [2] reservations   [3] units per user of the sale
-- ARGV  [1] user   [2] task of the new reservation   [3] quantity   [4] task of the
--       former reservation   [5] idempotency key, '' = none   [6] id of the item
--       [7] person keys and share, '' = only the account is counted
-- Reply { 1 reserved | 2 reserved before for this task | 0 fewer available
--         | -1 no gate | -2 the gate is being built or stale, or the former
--         reservation is not released yet, or the units per user are of another epoch
--         | -3 the user has a reservation for another order | -4 the user's reservations
--         leave too little of the limit of the sale, or those of a person of a limit, stock,
--         revision, epoch }
--
-- Invariant: stock + reserved = total; units are taken once per task. The window and
-- the state of the gate are not checked: the buyer was admitted before.
--
-- Prepended: prelude.lua.

local item, reservations, sale_units = unpack(KEYS)
local user, task, units, former_task, idempotency_key, item_id, persons = unpack(ARGV)

local g = read_gate(item)
if not g.there then
  return { -1, 0, 0, 0 }
end
local epoch = tonumber(g.epoch)
if g.state == 'loading' or not g.loaded then
  return { -2, 0, 0, epoch }
end
local quantity, record = tonumber(units), redis.call('HGET', reservations, user)
if record then
  local holder = string.match(record, '^[^|]*')
  if holder == task then
    return { 2, g.stock, g.rev, epoch }
  end
  return { holder == former_task and -2 or -3, g.stock, g.rev, epoch }
end
local now = redis_time()
local at = string.format('%.0f', now)
if persons ~= '' then at = at .. ',' .. persons end
local fields = person_fields(g, item_id, at)
if g.sale_limit > 0 then fields[#fields + 1] = user end
local taken = read_units(g, sale_units, fields)
if not taken then
  return { -2, 0, 0, epoch }
end
for i, field in ipairs(fields) do
  local most = g.sale_limit > 0 and g.sale_limit or g.limit
  if string.byte(field) == 107 then most = code_uses(field) end -- "k"
  if tonumber(taken[i + 1] or 0) + quantity > most then
    return { -4, g.stock, g.rev, epoch }
  end
end
local share = share_of(persons)
if spare_units(g, share, now) < quantity then
  return { 0, g.stock, g.rev, epoch }
end
take_share(g, share, quantity)
local stock, reserved, rev = g.stock - quantity, g.reserved + quantity, g.rev + 1
redis.call('HSET', reservations, user, task .. '|' .. quantity .. '|' .. at .. '|' .. idempotency_key)
redis.call('HSET', item, 'stock', stock, 'reserved', reserved, 'rev', rev)
if g.shares then redis.call('HSET', item, 'kept', shares_text(g)) end
if idempotency_key ~= '' then
  redis.call('HINCRBY', item, 'taken', 1) -- caches read the accepted keys again
end
for _, field in ipairs(fields) do
  add_units(sale_units, g.epoch, field, quantity)
end
return { 1, stock, rev, epoch }
