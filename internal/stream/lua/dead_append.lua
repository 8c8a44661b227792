-- Appends a dead letter for an entry, once.
-- KEYS[1] stream of dead letters
-- KEYS[2] its index, a hash in the same slot: "e:<stream>/<entry>" -> id of the
--         letter, "n:<stream>" -> number of letters from that stream
-- ARGV[1] stream of the entry
-- ARGV[2] id of the entry
-- ARGV[3…] field, value, field, value… of the letter
-- Reply: {id of the letter, 1 when it is new, 0 when it existed}.
-- Invariant: one letter per entry; the counts of the index equal the stream.
-- The entry id is the unique key, not the message id: a replayed message that fails
-- again is a new entry, and must not be confused with the letter being removed.
local name = 'e:' .. ARGV[1] .. '/' .. ARGV[2]
local there = redis.call('HGET', KEYS[2], name)
if there then
  return {there, 0}
end
local id = redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3))
redis.call('HSET', KEYS[2], name, id)
redis.call('HINCRBY', KEYS[2], 'n:' .. ARGV[1], 1)
return {id, 1}
