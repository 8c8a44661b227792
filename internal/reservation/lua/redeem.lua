-- redeem: turns units that are held for an offer into an order task.
--
-- KEYS  [1] order stream of the shard   [2] item   [3] holders
--       [4] idempotency records of the sale   [5] bucket of task records
-- ARGV  [1] user   [2] task      [3] offer   [4] sale   [5] item id   [6] quantity
--       [7] idempotency key      [8] life of idempotency and task records, ms
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
    return { now, 0, 0, code, 0, 0, task }
  end
  return { now, tonumber(f[2]), tonumber(f[3]), code, tonumber(f[5]), tonumber(f[6]), task }
end

local user, task, quantity = ARGV[1], ARGV[2], ARGV[6]
local idem, input = user .. ':' .. ARGV[7], '|' .. ARGV[5] .. '|' .. quantity
local before = redis.call('HGET', KEYS[4], idem)
if before then
  local known = string.match(before, '^[^|]*')
  return answer(string.sub(before, #known + 1) == input and 2 or 3, known)
end
if not loaded then
  return answer(4)
end
if f[1] == 'ended' or now >= tonumber(f[4]) then
  return answer(7)
end
if f[1] ~= 'open' then
  return answer(5)
end
local held = redis.call('HGET', KEYS[3], user)
if not held then
  return answer(8, '')
end
local holder, holds = string.match(held, '^([^|]*)|(%d+)|')
if holder ~= ARGV[3] then
  return answer(9, holder)
end
if holds ~= quantity then
  return answer(8, '')
end
local at = string.format('%d', now)
redis.call('HSET', KEYS[3], user, task .. '|' .. quantity .. '|' .. at .. '|' .. ARGV[7])
redis.call('HSET', KEYS[4], idem, task .. input)
redis.call('PEXPIRE', KEYS[4], ARGV[8])
redis.call('HSET', KEYS[5], 'task:' .. task, '{"id":"' .. task .. '","user":"' .. user .. '","sale":"' .. ARGV[4] ..
  '","item":"' .. ARGV[5] .. '","quantity":' .. quantity .. ',"status":"SUBMITTED","revision":1,"createdAtMs":' .. at ..
  ',"updatedAtMs":' .. at .. '}')
redis.call('PEXPIRE', KEYS[5], ARGV[8])
redis.call('XADD', KEYS[1], '*', 'epoch', f[2], 'at', at, unpack(ARGV, 9))
return answer(1)
