-- set_state: opens, pauses or ends the gate of an item, as a revision of its sale says.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   [2] revision of the sale   [3] state: open, paused or ended
-- Reply 1 done | 0 being built, a later revision was here, or, for open, not of this
--       epoch
--
-- Invariant: of two changes of a sale the later one decides, in whatever order they
-- arrive. Pausing and ending act on a gate of every epoch: the process that took the
-- next epoch may have died before it began to build. Stock and reservations do not change.

local g = read_gate(KEYS[1])
if not g.there or g.state == 'loading' or (ARGV[3] == 'open' and g.epoch ~= ARGV[1]) then
  return 0
end
if g.srev and g.srev > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'gate', ARGV[3], 'srev', ARGV[2])
return 1
