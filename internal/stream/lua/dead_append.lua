-- Sets an entry aside, once.
-- KEYS[1] the stream of dead letters
-- KEYS[2] its index, a hash in the same slot: "e:<stream>/<entry>" -> id of the
--         letter, "n:<stream>" -> letters that came from that stream
-- ARGV[1] stream the entry lies in, ARGV[2] id of the entry,
-- ARGV[3…] field, value, field, value… of the letter
-- Returns {id of the letter, 1 when it is new and 0 when it was there}.
-- Keeps true: one letter per entry; the counts of the index equal the stream.
-- The entry, not the message, is what is unique: a message that was replayed and
-- fails again is a new entry, and must not be taken for the letter being removed.
local name = 'e:' .. ARGV[1] .. '/' .. ARGV[2]
local there = redis.call('HGET', KEYS[2], name)
if there then
  return {there, 0}
end
local id = redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3))
redis.call('HSET', KEYS[2], name, id)
redis.call('HINCRBY', KEYS[2], 'n:' .. ARGV[1], 1)
return {id, 1}
