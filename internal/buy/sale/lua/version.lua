-- version: returns the version of the catalogue and the number of active writers.
--
-- KEYS  [1] version   [2] writers
-- Reply { version, number of active writers }

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
return { tonumber(redis.call('GET', KEYS[1]) or '0'), redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf') }
