-- unload: removes the gate of an item whose sale is over.
--
-- KEYS  [1] item   [2] reservations   [3] permits   [4] former reservations
--       [5] units per user of the sale, which no item needs once the sale is over
-- ARGV  [1] epoch
-- Reply 1 removed | 0 not there, or of a higher epoch

local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch or tonumber(epoch) > tonumber(ARGV[1]) then
  return 0
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5])
return 1
