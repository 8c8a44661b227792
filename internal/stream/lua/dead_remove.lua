-- Removes a letter, once.
-- KEYS[1] the stream of dead letters, KEYS[2] its index (see dead_append.lua)
-- ARGV[1] id of the letter, ARGV[2] stream and ARGV[3] entry it came from
-- Returns 1 when it was there, else 0.
-- Keeps true: the counts of the index equal the stream.
if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HDEL', KEYS[2], 'e:' .. ARGV[2] .. '/' .. ARGV[3])
if redis.call('HINCRBY', KEYS[2], 'n:' .. ARGV[2], -1) <= 0 then
  redis.call('HDEL', KEYS[2], 'n:' .. ARGV[2])
end
return 1
