-- begin: closes the gate of an item to build it under a higher epoch.
--
-- KEYS  [1] item   [2] reservations   [3] permits   [4] former reservations
--       [5] units per user of the sale
-- ARGV  [1] epoch
-- Reply 1 begun | 0 the gate has that epoch or a higher one; an error if the Redis user
--       must not run INFO
--
-- The reservations stay readable as the former ones until the gate is open. If a build
-- was not completed, the former ones are older than it.
-- The units per user are counted again. All items of a sale are begun before the first
-- of them is built.
-- Invariant: an epoch is built once; while it is built nothing can be reserved. The
-- gate stores the run id and the replication id of the server that it was built on.
--
-- Prepended: prelude.lua.

local item, reservations, permits, former_reservations, sale_units = unpack(KEYS)
local new_epoch = ARGV[1]

local epoch = tonumber(redis.call('HGET', item, 'epoch') or '0')
if epoch >= tonumber(new_epoch) then
  return 0
end
local run, replid = life()
if not run or not replid then
  return redis.error_reply('NOPERM no gate is built without INFO: grant +info to this user')
end
if redis.call('EXISTS', reservations) == 1 and redis.call('EXISTS', former_reservations) == 0 then
  redis.call('RENAME', reservations, former_reservations)
end
redis.call('UNLINK', reservations, permits) -- a DEL of millions of fields stops Redis for seconds
if redis.call('HGET', sale_units, 'epoch') ~= new_epoch then -- the first item of the sale
  redis.call('UNLINK', sale_units)
  redis.call('HSET', sale_units, 'epoch', new_epoch)
end
redis.call('HSET', item, 'epoch', new_epoch, 'gate', 'loading', 'since', string.format('%.0f', redis_time()), 'run', run, 'replid', replid)
return 1
