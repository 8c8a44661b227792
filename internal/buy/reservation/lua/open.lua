-- open: completes what begin started: writes rules, stock and state in one step.
--
-- KEYS  [1] item   [2] former reservations
-- ARGV  [1] epoch   [2] revision   [3] '1' buyers wait | '0' no buyer waits
--       then field, value, field, value, … of the item hash
-- Reply 1 open | 0 another build with a higher epoch has begun
--
-- Invariant: stock, reserved and reservations of one epoch belong together; the revision
-- of the stock never falls.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
local rev = math.max(tonumber(ARGV[2]), tonumber(redis.call('HGET', KEYS[1], 'rev') or '0') + 1)
redis.call('HSET', KEYS[1], 'rev', string.format('%.0f', rev), unpack(ARGV, 4))
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], 'line', string.format('%.0f', redis_time() + 3000)) -- renewed by waitlist_status
end
redis.call('UNLINK', KEYS[2])
return 1
