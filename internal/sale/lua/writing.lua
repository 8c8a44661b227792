-- writing: notes that somebody is about to change the catalogue.
--
-- KEYS  [1] writers: token → when the note lapses, ms
-- ARGV  [1] token   [2] life of the note, ms
-- Reply 1
--
-- Keeps true: while a note stands, readers ask the database every second, so that
-- a writer who dies between the database and the new version is noticed all the same.

local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
