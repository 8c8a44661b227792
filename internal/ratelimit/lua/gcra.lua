-- One try against a rate limit (GCRA).
--
-- KEYS[1]  bucket: string, theoretical arrival time in Unix microseconds; lapses
-- ARGV[1]  time that one token takes to come back, microseconds
-- ARGV[2]  burst, tokens
-- ARGV[3]  tokens asked for; 0 only looks
--
-- Replies {wait, ahead}, microseconds: wait > 0 is how long to wait before trying
-- again, 0 = allowed; ahead is how far the arrival time lies in the future, which
-- is how long until the bucket is full.
--
-- Keeps true: over any span of time at most burst + span / interval tokens are
-- taken, whatever the number of processes. Goes by Redis TIME. A refused try
-- takes nothing. Same arithmetic as Policy.decide.
local interval = tonumber(ARGV[1])
local depth = interval * tonumber(ARGV[2])
local cost = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
if tat < now then
  tat = now
elseif tat > now + depth then -- of a stricter limit, that was loosened
  tat = now + depth
  redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil(depth / 1000))
end
local nxt = tat + cost * interval
local wait = nxt - depth - now
if wait > 0 then return {wait, tat - now} end
if cost > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', nxt), 'PX', math.ceil((nxt - now) / 1000))
end
return {0, nxt - now}
