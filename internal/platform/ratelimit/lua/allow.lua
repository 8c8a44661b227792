-- allow: counts one attempt against a rate limit. Loaded behind window.lua.
--
-- KEYS[1]  times of the newest attempts, Unix microseconds
-- ARGV[1]  attempts allowed in a window   [2] length of the window, microseconds
-- Reply 0 allowed | microseconds until the next attempt
--
-- Uses Redis TIME.
local time = redis.call('TIME')
local window = tonumber(ARGV[2])
return take_window(KEYS[1], tonumber(ARGV[1]), window, tonumber(time[1]) * 1000000 + tonumber(time[2]), math.ceil(window / 1000))
