-- check: verifies an answer and uses it up if it is right. Loaded behind answer.lua.
--
-- KEYS  [1] record of the challenge
-- ARGV  [1] claim   [2] TTL of the record, ms
-- Reply the verdict, as of answer.lua
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local record = read_record(KEYS[1])
local verdict, created = answer(record, ARGV[1], now, 0)
if verdict == 'right' then use_up(record, created) end
if verdict == 'right' or verdict == 'wrong' then
  redis.call('HSET', KEYS[1], record_fields(record))
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return verdict
