-- redeem: turns units that are held for an offer into an order task.
--
-- KEYS  [1] order stream of the shard   [2] item   [3] holders   [4] idem   [5] task
-- ARGV  [1] user   [2] task   [3] offer   [4] item id   [5] quantity
--       [6] idempotency key   [7] life of idem and task records, ms
--       [8] task record (JSON without its closing brace)
--       then field, value, field, value, … of the stream entry
-- Reply as of reserve.lua, for one attempt; code 8 says that nothing is held for
--       the offer.
--
-- Keeps true: as reserve.lua. The units were taken when the offer was made, and
-- stay taken: stock and reserved do not change.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local f = redis.call('HMGET', KEYS[2], 'gate', 'epoch', 'opens', 'closes', 'stock', 'rev', 'run')
local loaded = (f[7] or '') == run() and f[1] and f[2] and f[3] and f[4] and f[5] and f[6]

local function answer(code, task)
  if not loaded then
    return { now, code, task, 0, 0, 0, 0 }
  end
  return { now, code, task, tonumber(f[5]), tonumber(f[6]), tonumber(f[2]), tonumber(f[3]) }
end

local input = '|' .. ARGV[4] .. '|' .. ARGV[5]
local before = redis.call('GET', KEYS[4])
if before then
  local known = string.match(before, '^[^|]*')
  return answer(string.sub(before, #known + 1) == input and 2 or 3, known)
end
if not loaded then
  return answer(4, '')
end
if f[1] == 'ended' or now >= tonumber(f[4]) then
  return answer(7, '')
end
if f[1] ~= 'open' then
  return answer(5, '')
end
local held = redis.call('HGET', KEYS[3], ARGV[1])
if not held then
  return answer(8, '')
end
local holder, quantity = string.match(held, '^([^|]*)|(%d+)|')
if holder ~= ARGV[3] then
  return answer(9, holder)
end
if quantity ~= ARGV[5] then
  return answer(8, '')
end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2] .. '|' .. quantity .. '|' .. now .. '|' .. ARGV[6])
redis.call('SET', KEYS[4], ARGV[2] .. input, 'PX', ARGV[7])
redis.call('SET', KEYS[5], ARGV[8] .. ',"createdAtMs":' .. now .. ',"updatedAtMs":' .. now .. '}', 'PX', ARGV[7])
redis.call('XADD', KEYS[1], '*', 'epoch', f[2], 'at', now, unpack(ARGV, 9))
return answer(1, ARGV[2])
