-- set_state: opens, pauses or ends the gate of an item for a revision of its sale, and
-- sets the times of that revision.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   [2] revision of the sale   [3] state: open, paused or ended
--       [4] opens (Unix ms)   [5] closes (Unix ms)
-- Reply 1 done | 0 the gate is being built or has a later revision, or, for open, has
--       another epoch
--
-- Invariant: of two changes of a sale the later one applies, in whatever order they
-- arrive. Pausing and ending apply to a gate of every epoch: the process that took the
-- next epoch may have crashed before it began to build. Stock and reservations do not
-- change.

local g = read_gate(KEYS[1])
if not g.there or g.state == 'loading' or (ARGV[3] == 'open' and g.epoch ~= ARGV[1]) then
  return 0
end
if g.srev and g.srev > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'gate', ARGV[3], 'srev', ARGV[2], 'opens', ARGV[4], 'closes', ARGV[5])
return 1
