-- check: verifies an answer and uses it up if it is right. Loaded behind answer.lua.
--
-- KEYS  [1] prefix of the records
-- ARGV  [1] challenge   [2] verdict   [3] creation of the challenge, Unix µs
--       [4] life of a challenge, ms   [5] TTL of a record, ms
-- Reply the verdict, as of answer.lua
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local book = open_records(KEYS[1], now, tonumber(ARGV[5]))
local record = parse_record(read_records(book, { ARGV[1] })[1])
local verdict = answer(record, ARGV[2], ARGV[3], now, tonumber(ARGV[4]), 0)
if verdict == 'right' then write_records(book, { ARGV[1], used_up(ARGV[3], '', '') }) end
if verdict == 'wrong' then write_records(book, { ARGV[1], record_text(record) }) end
return verdict
