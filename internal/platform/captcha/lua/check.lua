-- check: verifies an answer and uses it up if it is right. Loaded behind answer.lua.
--
-- KEYS  [1] hash of the open challenges
-- ARGV  [1] challenge   [2] MAC of the answer
-- Reply { verdict, kind }, as of answer.lua
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local verdict, kind = answer(KEYS[1], ARGV[1], ARGV[2], now, 0)
if verdict == 'right' then use_up(KEYS[1]) end
return {verdict, kind}
