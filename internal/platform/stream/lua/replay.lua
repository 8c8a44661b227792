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
--
-- Prepended: append.lua.

local stream, stream_sum, marker = KEYS[1], KEYS[2], KEYS[3]
local marker_ttl, orders = ARGV[1], ARGV[2]

if redis.call('EXISTS', marker) == 1 then
  return 0
end
append_message(stream, stream_sum, orders, unpack(ARGV, 3))
redis.call('SET', marker, 1, 'PX', marker_ttl)
return 1
