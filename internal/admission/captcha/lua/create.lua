-- Opens a challenge.
--
-- KEYS[1]  hash of the open challenges; see answer.lua. The path that it notes,
--          and its permits, lie in the same slot: they carry the same hash tag.
-- ARGV[1]  challenge
-- ARGV[2]  MAC of its answer
-- ARGV[3]  kind
-- ARGV[4]  life, milliseconds
-- ARGV[5]  "" = void all other challenges and the path traded for one;
--          else a challenge that stays open beside this one, and so does the path
--
-- Replies 1.
--
-- Keeps true: at most two challenges of a scope are open, the newest and the one
-- just answered wrongly; a challenge that a person asked for leaves neither
-- another challenge nor an unused path behind.
local key, keep = KEYS[1], ARGV[5]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local life = tonumber(ARGV[4])

if keep == '' then
  local path = redis.call('HMGET', key, 'path', 'permits', 'user')
  if path[1] then
    redis.call('DEL', path[1])
    redis.call('ZREM', path[2], path[3])
  end
  redis.call('DEL', key)
else
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 2) == 'c:' and field ~= 'c:' .. keep then redis.call('HDEL', key, field) end
  end
end
redis.call('HSET', key, 'c:' .. ARGV[1], ARGV[2] .. '|0|' .. string.format('%.0f', now + life) .. '|' .. ARGV[3])
redis.call('PEXPIRE', key, life)
return 1
