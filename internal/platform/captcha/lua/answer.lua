-- answer: functions that decide whether an answer counts; prepended to the scripts that use
-- them. Challenges are not stored: they are signed (captcha/token.go), and the caller has
-- verified signature and answer.
--
-- A record is a hash, one for each user and sale, or for each challenge of another purpose:
--   answered       "created|tries": the newest challenge that was answered or that voided
--                  earlier ones, by its creation (Unix µs), and its wrong answers; after the
--                  right one they are MAX_TRIES
--   permits, user  the path token that a right answer was exchanged for: the key of the
--                  permits, and the member there
--   request        name of the request that exchanged it; "" = an admission
--
-- read_record(key)  returns a record as a table: newest, tries, permits, user, request
-- answer(record, claim, now, opens)  returns the verdict on a claim ("verdict|created|expires",
--   Claim.Text) and the creation of its challenge:
--   "right" (nothing is changed), "wrong" (counted in the table), "unknown" (the challenge
--   is void, expired or none of the scope), "early" (right, but the challenge was created
--   before opens (Unix ms); 0 = every time is late enough)
-- use_up(record, created)  voids the challenge and all earlier ones, in the table
-- record_fields(record)  returns the fields and values of a table, for HSET. The key must
--   live at least as long as a challenge after it, or an answer would count twice
--
-- Invariant: challenges count in the order of their creation: one that is older than the
-- newest that was answered is void. A challenge takes at most three wrong answers and one
-- right one, provided that the script calls use_up and writes the record in the step that
-- the right answer allows.
local MAX_TRIES = 3
local CLOCK_SET_BACK = 5000000 -- µs; later creations are from before that, and forgotten

local function read_record(key)
  local f = redis.call('HMGET', key, 'answered', 'permits', 'user', 'request')
  local newest, tries = string.match(f[1] or '', '^(%d+)|(%d+)$')
  return { newest = tonumber(newest or 0), tries = tonumber(tries or 0), permits = f[2], user = f[3], request = f[4] }
end

local function answer(record, claim, now, opens)
  local verdict, created, expires = string.match(claim, '^(%a+)|(%d+)|(%d+)$')
  created = tonumber(created)
  if verdict == 'unknown' or now >= tonumber(expires) then return 'unknown', created end
  if record.newest > now * 1000 + CLOCK_SET_BACK then record.newest, record.tries = 0, 0 end
  if created < record.newest or created == record.newest and record.tries >= MAX_TRIES then return 'unknown', created end
  if verdict == 'right' then return created < opens * 1000 and 'early' or 'right', created end
  record.tries = created == record.newest and record.tries + 1 or 1
  record.newest = created
  return 'wrong', created
end

local function use_up(record, created)
  record.newest, record.tries = created, MAX_TRIES
end

local function record_fields(record)
  return 'answered', string.format('%.0f|%d', record.newest, record.tries)
end

