-- Appends the fields of a dead letter to their original stream, once.
-- KEYS[1] stream
-- KEYS[2] its sum (see append.lua)
-- KEYS[3] marker of this letter's replay, in the same slot
-- ARGV[1] TTL of the marker in milliseconds
-- ARGV[2] number of orders in the message
-- ARGV[3…] field, value, field, value… of the entry
-- Reply: 1 when it appended, 0 when this letter was replayed before.
-- Invariant: one appended entry per letter while the marker exists, however often
-- the steps before and after it are repeated.
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 0
end
append_message(KEYS[1], KEYS[2], ARGV[2], unpack(ARGV, 3))
redis.call('SET', KEYS[3], 1, 'PX', ARGV[1])
return 1
