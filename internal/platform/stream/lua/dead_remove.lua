-- Removes a dead letter that an earlier release keeps in Redis, once.
-- KEYS[1] stream of dead letters
-- KEYS[2] its index, a hash in the same slot: "e:<stream>/<entry>" -> id of the
--         letter, "n:<stream>" -> number of letters from that stream
-- ARGV[1] id of the letter
-- ARGV[2] stream of its entry
-- ARGV[3] id of its entry
-- Reply: 1 when it existed, else 0.
-- Invariant: the counts of the index equal the stream.

local letters, index = KEYS[1], KEYS[2]
local letter, stream, entry = unpack(ARGV)

if redis.call('XDEL', letters, letter) == 0 then
  return 0
end
redis.call('HDEL', index, 'e:' .. stream .. '/' .. entry)
if redis.call('HINCRBY', index, 'n:' .. stream, -1) <= 0 then
  redis.call('HDEL', index, 'n:' .. stream)
end
return 1
