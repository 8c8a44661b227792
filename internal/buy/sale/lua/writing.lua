-- writing: records that a process is about to change the catalogue.
--
-- KEYS  [1] writers: token → when the record expires, ms
-- ARGV  [1] token   [2] TTL of the record, ms
-- Reply 1
--
-- Invariant: while a record exists, readers query the database every second. So the
-- change of a writer that crashes between the database and the new version is still
-- noticed.

local writers = KEYS[1]
local token, ttl = ARGV[1], ARGV[2]

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', writers, '-inf', now)
redis.call('ZADD', writers, now + ttl, token)
redis.call('PEXPIRE', writers, ttl)
return 1
