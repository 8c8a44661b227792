-- Appends the fields of a dead letter to the stream they came from, once.
-- KEYS[1] the stream, KEYS[2] the mark of this letter's replay, in the same slot
-- ARGV[1] how long the mark stays, in milliseconds
-- ARGV[2…] field, value, field, value… of the entry
-- Returns 1 when it appended, 0 when this letter was replayed before.
-- Keeps true: however often the steps around it are repeated, one entry per letter.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2))
redis.call('SET', KEYS[2], 1, 'PX', ARGV[1])
return 1
