-- run tells one life of the server from another: a restart, a failover and a
-- restored copy all change it. '' where the server does not say (embedded).
local function run()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end
