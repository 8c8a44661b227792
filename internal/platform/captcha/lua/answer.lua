-- answer: functions that verify answers; prepended to the scripts that use them.
--
-- A hash holds the open challenges of one scope:
--   c:<challenge>        "mac|wrong answers so far|expires (Unix ms)|kind|created (Unix ms)"
--   permits, user  the path token that a right answer was exchanged for: the key of the
--                  permits, and the member there
--   request        name of the request that exchanged it; "" = an admission
--
-- answer(key, challenge, mac, now, opens)  returns a verdict and the kind ("" if unknown):
--   "right" (nothing is changed), "wrong" (counted; the third voids the challenge),
--   "unknown" (no such challenge is open), "early" (right, but the challenge was
--   created before opens (Unix ms); 0 = every time is late enough)
-- use_up(key)  voids all open challenges of the hash; the path token stays recorded
--
-- Invariant: a challenge takes at most three wrong answers and one right one, provided
-- that the script calls use_up in the step that the right answer allows. MACs are
-- compared, never answers, so that timing reveals nothing.
local MAX_TRIES = 3

local function answer(key, challenge, mac, now, opens)
  local field = 'c:' .. challenge
  local open = redis.call('HGET', key, field)
  if not open then return 'unknown', '' end
  local want, tries, expires, kind, created = string.match(open, '^(%x+)|(%d+)|(%d+)|([^|]*)|?(%d*)$')
  if not want or now >= tonumber(expires) then
    redis.call('HDEL', key, field)
    return 'unknown', kind or ''
  end
  if want == mac then
    if (tonumber(created) or now) < opens then return 'early', kind end
    return 'right', kind
  end
  tries = tonumber(tries) + 1
  if tries >= MAX_TRIES then
    redis.call('HDEL', key, field)
  else
    redis.call('HSET', key, field, want .. '|' .. tries .. '|' .. expires .. '|' .. kind .. '|' .. created)
  end
  return 'wrong', kind
end

local function use_up(key)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 2) == 'c:' then redis.call('HDEL', key, field) end
  end
end

