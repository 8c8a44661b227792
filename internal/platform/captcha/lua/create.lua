-- create: opens a challenge, with a difficulty that depends on the requester's penalty.
--
-- KEYS  [1] hash of the open challenges; see answer.lua. The permits that it names are in
--           the same slot: they have the same hash tag.
--       [2…] penalty of the user or network, in the same slot: string, when the last
--           point expires (Unix ms); the key expires then
-- ARGV  [1] challenge
--       [2] kind
--       [3] lifetime, ms
--       [4] "" = void all other challenges and the path token received for one;
--           else a challenge that stays open beside this one, and so does the path token
--       [5] points that this challenge adds to each penalty
--       [6] penalty up to which a challenge has level 1, as ms until it has expired;
--           each doubling of it is a level
--       [7] number of levels
--       [8…] MACs of its answer, from the lowest level up; if there are fewer than
--           levels, the last one is used for all levels above
--       then for each penalty, the ms in which a point expires
-- Reply { the level, from 1, now (Unix ms) }
--
-- Invariant: at most two challenges of a scope are open, the newest and the one just
-- answered wrongly; a challenge that a user requested leaves neither another challenge
-- nor an unused path token behind. A penalty is never more than the highest level needs,
-- so that every penalty expires within a bounded time.
local key, keep = KEYS[1], ARGV[4]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local life, points, room, levels = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local penalties = #KEYS - 1
local macs = #ARGV - 7 - penalties

local level = 1
for i = 1, penalties do
  local goes = tonumber(ARGV[7 + macs + i])
  local cool = math.max(now, tonumber(redis.call('GET', KEYS[1 + i]) or '0')) + points * goes
  cool = math.min(cool, now + room * 2 ^ (levels - 1))
  redis.call('SET', KEYS[1 + i], string.format('%.0f', cool), 'PX', string.format('%.0f', cool - now))
  while level < levels and cool - now > room * 2 ^ (level - 1) do level = level + 1 end
end

if keep == '' then
  local permit = redis.call('HMGET', key, 'permits', 'user')
  if permit[1] then
    local till = redis.call('ZSCORE', permit[1], permit[2])
    if till and tonumber(till) > now then redis.call('ZREM', permit[1], permit[2]) end -- an expired one is counted: path/lua/unused.lua
  end
  redis.call('DEL', key)
else
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 2) == 'c:' and field ~= 'c:' .. keep then redis.call('HDEL', key, field) end
  end
end
local mac = ARGV[7 + math.min(level, macs)]
redis.call('HSET', key, 'c:' .. ARGV[1], mac .. '|0|' .. string.format('%.0f|%s|%.0f', now + life, ARGV[2], now))
redis.call('PEXPIRE', key, life)
return {level, now}
