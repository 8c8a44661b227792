-- redeem: turns the units that are reserved for an offer into an order task.
--
-- KEYS  [1] order stream of the shard   [2] item   [3] reservations
--       [4] idempotency keys of the sale   [5] sum of the stream   [6] former reservations
-- ARGV  [1] user   [2] task      [3] offer   [4] sale   [5] item id   [6] quantity
--       [7] idempotency key      [8] TTL of idempotency keys, ms
--       [9] terms (see append_orders.lua)   [10] [11] names of the stream's fields for
--       message id and payload
-- Reply as in reserve.lua, for one attempt; code 8: nothing is reserved for the offer.
--
-- Invariant: as in reserve.lua. The units were taken when the offer was made and stay
-- taken: stock and reserved do not change.

local now = redis_time()
local g = read_gate(KEYS[2])

local function answer(code, task)
  if not g.loaded then
    return { now, 0, 0, code, 0, 0, task }
  end
  return { now, tonumber(g.epoch), g.opens, code, g.stock, g.rev, task }
end

local user, task, quantity = ARGV[1], ARGV[2], ARGV[6]
local idem, input = user .. ':' .. ARGV[7], '|' .. ARGV[5] .. '|' .. quantity
local record = redis.call('HGET', g.state == 'loading' and KEYS[6] or KEYS[3], user)
local holder, units, key = string.match(record or '', '^([^|]*)|(%d+)|[^|]*|(.*)$')
local before = redis.call('HGET', KEYS[4], idem)
if not before and key == ARGV[7] then
  before = holder .. '|' .. ARGV[5] .. '|' .. units
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
if holder ~= ARGV[3] then
  return answer(9, holder)
end
if units ~= quantity then
  return answer(8, '')
end
local at = string.format('%.0f', now)
record = task .. '|' .. quantity .. '|' .. at .. '|' .. ARGV[7]
redis.call('HSET', KEYS[3], user, record)
redis.call('HSET', KEYS[4], idem, task .. input)
redis.call('PEXPIRE', KEYS[4], ARGV[8])
local it = { sale = ARGV[4], id = ARGV[5], epoch = g.epoch, terms = ARGV[9], users = { user }, reservations = { record } }
append_orders(KEYS[1], KEYS[5], { ARGV[10], ARGV[11] }, { it })
return answer(1)
