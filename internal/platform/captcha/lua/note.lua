-- note: adds the points of challenges to penalties, and voids what came before a challenge.
-- Loaded behind answer.lua.
--
-- KEYS  for each note: the penalty of a user or network: string, when the last point
--       expires (Unix ms), and the key expires then; the prefix of the records of the sale.
--       All in one slot, as the permits that a record names
-- ARGV  [1] maximum of a penalty, as ms until it has expired   [2] TTL of a record, ms
--       then for each note: the ms that its points take to expire, 0 = the penalty is not
--       used; creation of the challenge (Unix µs) that voids earlier ones and the path token
--       received for one, 0 = none; field of their record
-- Reply now (Unix ms), then each penalty: when its last point expires (Unix ms)
--
-- Invariant: a penalty is never more than the highest level needs, so that every penalty
-- expires within a bounded time. A challenge that was answered meanwhile voids nothing more.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local most, ttl = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply = { now }
for i = 1, #KEYS / 2 do
  local penalty, prefix = KEYS[2 * i - 1], KEYS[2 * i]
  local points, created, field = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local cool = 0
  if points ~= '0' then
    cool = math.min(math.max(now, tonumber(redis.call('GET', penalty) or '0')) + tonumber(points), now + most)
    redis.call('SET', penalty, string.format('%.0f', cool), 'PX', string.format('%.0f', cool - now))
  end
  reply[i + 1] = cool
  if created ~= '0' then
    local book = open_records(prefix, now, ttl)
    local record = parse_record(read_records(book, { field })[1])
    if record.newest < tonumber(created) then
      if record.permits ~= '' then
        local till = redis.call('ZSCORE', record.permits, field) -- such a field is the user
        if till and tonumber(till) > now then redis.call('ZREM', record.permits, field) end -- an expired one is counted: path/lua/unused.lua
      end
      write_records(book, { field, created .. '|0||' })
    end
  end
end
return reply
