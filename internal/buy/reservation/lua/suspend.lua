-- suspend: stops an open gate until it is rebuilt, or its state is set.
--
-- KEYS  [1] item
-- Reply 1 suspended | 0 there is no open gate
--
-- Invariant: the revision of the sale does not change, so that the next change of the
-- sale, and the next check of the gate, set the state again.

if redis.call('HGET', KEYS[1], 'gate') ~= 'open' then
  return 0
end
redis.call('HSET', KEYS[1], 'gate', 'paused')
return 1
