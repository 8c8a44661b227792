-- unused: counts path tokens that expired unused like reservations that expired unpaid;
-- prepended to the scripts that use it. A token that withheld a unit from others costs its
-- user the same as an unpaid order.
--
-- expire_unused(permits, now, prefix, wait, users)  removes the expired permits of the
--   given users and counts one expiry for each: the key of the count is prefix .. user;
--   it expires after wait, ms
--
-- Invariant: a token is counted once, in the step that removes its permit; a used or
-- voided token has no permit and is not counted.
local function expire_unused(permits, now, prefix, wait, users)
  for _, user in ipairs(users) do
    local till = redis.call('ZSCORE', permits, user)
    if till and tonumber(till) <= now then
      redis.call('ZREM', permits, user)
      redis.call('INCR', prefix .. user)
      redis.call('PEXPIRE', prefix .. user, wait)
    end
  end
end

