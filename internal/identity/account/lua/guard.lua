-- Accepts or refuses an attempt to sign in to one account, and counts it.
--
-- KEYS[1]  guard of the account: hash fails, until (Unix ms); expires
-- ARGV[1]  "1" = the attempt has a correct captcha answer
-- ARGV[2]  failures from which an answer is required
-- ARGV[3]  failures from which each attempt must wait after the previous one
-- ARGV[4]  first wait, milliseconds; it doubles with each further failure
-- ARGV[5]  longest wait, milliseconds
-- ARGV[6]  how long failures are remembered, milliseconds
--
-- Replies {"wait", ms to wait}, {"captcha", 0} or {"go", failures if this one fails}.
--
-- Invariant: an attempt counts as failed before its password is checked, and the failures
-- are cleared if it was correct, so that a thousand concurrent attempts are not accepted
-- together. A refused attempt changes nothing.

local guard_key = KEYS[1]
local answered, captcha_from, wait_from, first_wait, longest_wait, memory = unpack(ARGV)

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local guard = redis.call('HMGET', guard_key, 'fails', 'until')
local fails, untilMs = tonumber(guard[1] or '0'), tonumber(guard[2] or '0')
if now < untilMs then return {'wait', untilMs - now} end
if fails >= tonumber(captcha_from) and answered ~= '1' then return {'captcha', 0} end
fails = fails + 1
local wait = 0
local from = tonumber(wait_from)
if fails >= from then
  wait = math.min(tonumber(longest_wait), tonumber(first_wait) * 2 ^ math.min(fails - from, 30))
end
redis.call('HSET', guard_key, 'fails', fails, 'until', string.format('%.0f', now + wait))
redis.call('PEXPIRE', guard_key, memory)
return {'go', fails}
