-- answer: functions that decide whether an answer counts; prepended to the scripts that use
-- them. Challenges are not stored: they are signed (captcha/token.go), and the caller has
-- verified signature and answer.
--
-- Records are fields of hashes, one hash per sale and period of the TTL of a record: user →
-- "created|tries|request|permits". Captchas of the waitlist have "waitlist:user" in place of the
-- user, and those of accounts the challenge.
--   created, tries  the newest challenge that was answered or that voided earlier ones, by its
--                   creation (Unix µs), and its wrong answers; MAX_TRIES after the right one
--   permits         key of the permits with the path token of the user; "" = none
--   request         name of the request that a right answer was exchanged in; "" = an admission
--
-- open_records(prefix, now, ttl)  the records of a sale: prefix is the key without the period,
--   ttl (ms) outlives a challenge and a path token
-- read_records(book, fields)  returns the text of each record, false = none
-- parse_record(text)  returns a record as a table, which is not to be changed: newest, created (its
--   text), tries, request, permits
-- record_text(created, tries, request, permits)  the opposite
-- used_up(created, request, permits)  the text of a record whose challenge was exchanged
-- write_records(book, changed)  writes records: field, text, …
-- answer(record, verdict, created, now, life, opens)  returns the verdict on the answer to the
--   challenge created then (text):
--   "right", "wrong", with the text of the record that counts it, "unknown" (the challenge
--   is void, expired or none of the scope), "early" (right, but the challenge was created
--   before opens (Unix ms); 0 = every time is late enough). life of a challenge in ms
--
-- Invariant: challenges count in the order of their creation: one that is older than the
-- newest that was answered is void. A challenge takes at most three wrong answers and one
-- right one, provided that the script writes used_up in the step that
-- the right answer allows. A record is found for at least its TTL after a write.
local MAX_TRIES = 3
local CLOCK_SET_BACK = 5000000 -- µs; later creations are from before that, and forgotten

local function open_records(prefix, now, ttl)
  local period = math.floor(now / ttl)
  return { this = prefix .. ':' .. period, last = prefix .. ':' .. (period - 1), ttl = 2 * ttl }
end

local function read_records(book, fields)
  local this = redis.call('HMGET', book.this, unpack(fields))
  if redis.call('EXISTS', book.last) == 0 then return this end
  local last = redis.call('HMGET', book.last, unpack(fields))
  for i = 1, #fields do this[i] = this[i] or last[i] end
  return this
end

local NO_RECORD = { newest = 0, created = '0', tries = 0, request = '', permits = '' }

local function parse_record(text)
  if not text then return NO_RECORD end
  local created, tries, request, permits = string.match(text, '^(%d+)|(%d+)|([^|]*)|(.*)$')
  return { newest = tonumber(created), created = created, tries = tonumber(tries), request = request, permits = permits }
end

local function record_text(created, tries, request, permits)
  return created .. '|' .. tries .. '|' .. request .. '|' .. permits
end

local function used_up(created, request, permits)
  return created .. '|3|' .. request .. '|' .. permits -- 3 is MAX_TRIES: number formatting is slow in Redis
end

local function write_records(book, changed)
  if #changed == 0 then return end
  redis.call('HSET', book.this, unpack(changed))
  redis.call('PEXPIRE', book.this, book.ttl)
end

local function answer(record, verdict, created, now, life, opens)
  local at = tonumber(created)
  if verdict == 'unknown' or now >= math.floor(at / 1000) + life then return 'unknown' end
  local newest, tries = record.newest, record.tries
  if newest > now * 1000 + CLOCK_SET_BACK then newest, tries = 0, 0 end
  if at < newest or at == newest and tries >= MAX_TRIES then return 'unknown' end
  if verdict == 'right' then return at < opens * 1000 and 'early' or 'right' end
  return 'wrong', record_text(created, at == newest and tries + 1 or 1, record.request, record.permits)
end

