-- Counts one attempt against a rate limit (GCRA).
--
-- KEYS[1]  bucket: string, theoretical arrival time in Unix microseconds; expires
-- ARGV[1]  time in which one token is refilled, microseconds
-- ARGV[2]  burst, tokens
-- ARGV[3]  tokens requested; 0 takes none
--
-- Replies {wait, ahead}, microseconds: wait > 0 is the time until the next attempt, 0 =
-- allowed; ahead is how far the arrival time lies in the future, which is the time until
-- the bucket is full.
--
-- Invariant: in any interval at most burst + interval length / ARGV[1] tokens are taken,
-- whatever the number of processes. Uses Redis TIME. A refused attempt takes nothing.
-- Same arithmetic as Policy.decide.
local interval = tonumber(ARGV[1])
local depth = interval * tonumber(ARGV[2])
local cost = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
if tat < now then
  tat = now
elseif tat > now + depth then -- stored under a stricter limit, which was raised
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
