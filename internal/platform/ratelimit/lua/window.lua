-- take_window(key, most, window, now, ttl)  counts one attempt, unless as many as most were
--   counted in the window that ends now. It returns 0, or the wait until one more is allowed.
--   window and now are in one unit; ttl is the window in whole ms, rounded up.
--
-- The key is a list of the times of the newest attempts, the newest last. It expires when
-- no attempt is in the window any more. A refused attempt is not counted. Times that are
-- more than a window ahead are from before the clock was set back: they are forgotten.
--
-- Invariant: no window has more than most attempts, whatever the number of processes.
local function take_window(key, most, window, now, ttl)
  local oldest = redis.call('LINDEX', key, -most)
  oldest = oldest and tonumber(oldest)
  if oldest and oldest > now + window then
    redis.call('DEL', key)
  elseif oldest and oldest + window > now then
    return math.min(window, oldest + window - now)
  end
  if redis.call('RPUSH', key, string.format('%.0f', now)) > most then redis.call('LTRIM', key, -most, -1) end
  redis.call('PEXPIRE', key, ttl)
  return 0
end
