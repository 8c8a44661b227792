-- open: completes what begin started: writes rules, stock and state in one step.
--
-- KEYS  [1] item   [2] former reservations
-- ARGV  [1] epoch   [2] revision   [3] '1' buyers wait | '0' no buyer waits
--       then field, value, field, value, … of the item hash
-- Reply 1 open | 0 another build with a higher epoch has begun
--
-- Invariant: stock, reserved and reservations of one epoch belong together; the revision
-- of the stock never falls.
--
-- Prepended: prelude.lua.

local item, former_reservations = KEYS[1], KEYS[2]
local epoch, revision, waiting = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HGET', item, 'epoch') ~= epoch then
  return 0
end
local rev = math.max(tonumber(revision), tonumber(redis.call('HGET', item, 'rev') or '0') + 1)
redis.call('HDEL', item, 'kept') -- of the former epoch
redis.call('HSET', item, 'rev', string.format('%.0f', rev), unpack(ARGV, 4))
if waiting == '1' then
  redis.call('HSET', item, 'line', string.format('%.0f', redis_time() + 3000)) -- renewed by waitlist_status
end
redis.call('UNLINK', former_reservations)
return 1
