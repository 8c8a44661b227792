-- check: verifies answers and uses the right ones up. Loaded behind answer.lua.
--
-- KEYS  [1] prefix of the records
-- ARGV  [1] life of a challenge, ms   [2] TTL of a record, ms
--       [3] opening of the sale, Unix ms; 0 = every time is late enough
--       then for each answer: field of its record, verdict, creation of its challenge, Unix µs.
--       No two have the same field
-- Reply for each answer the verdict, as of answer.lua
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local life, opens = tonumber(ARGV[1]), tonumber(ARGV[3])
local book = open_records(KEYS[1], now, tonumber(ARGV[2]))
local fields, changed, reply = {}, {}, {}
for a = 4, #ARGV, 3 do fields[#fields + 1] = ARGV[a] end
local records = read_records(book, fields)
for i, field in ipairs(fields) do
  local verdict, created = ARGV[3 * i + 2], ARGV[3 * i + 3]
  local text
  reply[i], text = answer(parse_record(records[i]), verdict, created, now, life, opens)
  if reply[i] == 'right' then text = used_up(created, '', '') end
  if text then changed[#changed + 1], changed[#changed + 2] = field, text end
end
write_records(book, changed)
return reply
