-- unused: counts path tokens that expired unused like reservations that expired unpaid;
-- prepended to the scripts that use it. A token that withheld a unit from others costs its
-- user the same as an unpaid order.
--
-- Permits with a negative expiry were granted to a load tool. They are not counted.
--
-- expire_unused(permits, admissions, now, prefix, users)  removes the expired permits
--   of the given users and counts one expiry for each, and for the person keys that buyers.lua noted. If the token came from the waiting room,
--   its expiry in admissions becomes negative: it was not used
-- unused_permits(permits, now, life)  the number of unused tokens: those that expire within
--   the lifetime of a token, ms. Later ones are from before the clock was set back. They
--   stay valid for their users, but keep no unit from others any longer than that
-- void_unused(permits, user, now)  removes the permit of an unused token; an expired one
--   stays until it is counted
-- keep_permits(permits, ttl)  keeps expired permits until they are counted: the key lives
--   at least this long, ms
--
-- Invariant: a token is counted once, in the step that removes its permit; a used or
-- voided token has no permit and is not counted.
local function expire_unused(permits, admissions, now, prefix, users)
  for _, user in ipairs(users) do
    local till = redis.call('ZSCORE', permits, user)
    if till and tonumber(till) <= now and tonumber(till) > 0 then
      redis.call('ZREM', permits, user)
      if redis.call('ZSCORE', admissions, user) == till then redis.call('ZADD', admissions, '-' .. till, user) end
      count_expiry(prefix, user, redis.call('HGET', prefix .. 'persons', user) or '')
    end
  end
end

local function unused_permits(permits, now, life)
  return redis.call('ZCOUNT', permits, string.format('(%.0f', now), string.format('%.0f', now + life))
end

local function void_unused(permits, user, now)
  local till = redis.call('ZSCORE', permits, user)
  if till and tonumber(till) > now then redis.call('ZREM', permits, user) end
end

local function keep_permits(permits, ttl)
  if redis.call('PTTL', permits) < ttl then redis.call('PEXPIRE', permits, string.format('%.0f', ttl)) end
end
