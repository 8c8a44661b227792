-- set_state: opens, pauses or ends the gate of an item, as a revision of its sale says.
--
-- KEYS  [1] item
-- ARGV  [1] epoch   [2] revision of the sale   [3] state: open, paused or ended
-- Reply 1 done | 0 not of this epoch, being built, or a later revision was here
--
-- Invariant: of two changes of a sale the later one decides, in whatever order they
-- arrive. Stock and reservations do not change.

local g = read_gate(KEYS[1])
if not g.there or g.state == 'loading' or g.epoch ~= ARGV[1] then
  return 0
end
if g.srev and g.srev > tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'gate', ARGV[3], 'srev', ARGV[2])
return 1
