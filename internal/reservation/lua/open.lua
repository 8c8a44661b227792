-- open: finishes what begin started: rules, stock and the state of the gate in one step.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   then field, value, field, value, … of the item hash
-- Reply 1 open | 0 another build with a higher epoch has begun meanwhile
--
-- Invariant: stock, reserved and reservations of one epoch belong together.

if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
