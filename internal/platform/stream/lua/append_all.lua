-- Appends messages to a stream, all or none.
-- KEYS[1] stream
-- KEYS[2] its sum (see append.lua)
-- KEYS[3] marker, in the same slot; left out: the messages are appended at each call
-- ARGV[1] TTL of the marker in milliseconds
--         then for each message: number of its orders, number of arguments that follow,
--         field, value, field, value…
-- Reply: 1 when it appended, 0 when the marker existed.
-- Invariant: the messages are appended once while the marker exists.
--
-- Prepended: append.lua.

local stream, stream_sum, marker = KEYS[1], KEYS[2], KEYS[3]
local marker_ttl = ARGV[1]

if marker and redis.call('EXISTS', marker) == 1 then
  return 0
end
local a = 2
while a < #ARGV do
  local last = a + 1 + tonumber(ARGV[a + 1])
  append_message(stream, stream_sum, ARGV[a], unpack(ARGV, a + 2, last))
  a = last + 1
end
if marker then
  redis.call('SET', marker, 1, 'PX', marker_ttl)
end
return 1
