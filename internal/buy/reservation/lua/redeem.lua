-- redeem: turns the units that are reserved for an offer into an order task.
--
-- KEYS  [1] order stream of the shard   [2] item   [3] reservations
--       [4] idempotency keys of the sale   [5] sum of the stream   [6] former reservations
-- ARGV  [1] user   [2] task      [3] offer   [4] sale   [5] item id   [6] quantity
--       [7] idempotency key      [8] TTL of idempotency keys, ms
--       [9] terms (see append_orders.lua)   [10] [11] names of the stream's fields for
--       message id and payload   [12] origin of the attempt, "" = unknown
-- Reply as in reserve.lua, for one attempt; code 8: nothing is reserved for the offer.
--
-- Invariant: as in reserve.lua. The units were taken when the offer was made and stay
-- taken: stock and reserved do not change.
--
-- Prepended: prelude.lua, stream/lua/append.lua, append_orders.lua.

local stream, item, reservations, idempotency_keys, stream_sum, former_reservations = unpack(KEYS)
local user, task, offer, sale, item_id, quantity, idempotency_key, idempotency_ttl, terms, id_field, payload_field, origin = unpack(ARGV)

local now = redis_time()
local g = read_gate(item)

local function answer(code, known)
  if not g.loaded then
    return { now, 0, 0, code, 0, 0, known }
  end
  return { now, tonumber(g.epoch), g.opens, code, g.stock, g.rev, known }
end

local idem, input = user .. ':' .. idempotency_key, '|' .. item_id .. '|' .. quantity
local record = redis.call('HGET', g.state == 'loading' and former_reservations or reservations, user)
local holder, units, offered_at, key = string.match(record or '', '^([^|]*)|(%d+)|([^|]*)|(.*)$')
local before = redis.call('HGET', idempotency_keys, idem)
if not before and key == idempotency_key then
  before = holder .. '|' .. item_id .. '|' .. units
end
if before then
  local known = string.match(before, '^[^|]*')
  return answer(string.sub(before, #known + 1) == input and 2 or 3, known)
end
local why = refusal(g, now)
if why == 'not_loaded' then
  return answer(4)
end
if why == 'ended' then
  return answer(7)
end
if why == 'paused' then
  return answer(5)
end
if not record then
  return answer(8, '')
end
if holder ~= offer then
  return answer(9, holder)
end
if units ~= quantity then
  return answer(8, '')
end
local at = string.format('%.0f', now) .. (string.match(offered_at, ',.*$') or '') -- the persons stay
record = task .. '|' .. quantity .. '|' .. at .. '|' .. idempotency_key
redis.call('HSET', reservations, user, record)
redis.call('HSET', idempotency_keys, idem, task .. input)
redis.call('PEXPIRE', idempotency_keys, idempotency_ttl)
local it = { sale = sale, id = item_id, epoch = g.epoch, terms = terms, users = { user }, reservations = { record }, origins = { origin ~= '' and origin or nil } }
append_orders(stream, stream_sum, { id_field, payload_field }, { it })
return answer(1)
