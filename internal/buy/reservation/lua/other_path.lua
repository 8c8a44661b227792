-- other_path: whether another account of the same person has an unused path token; prepended to the
-- scripts that use it.
--
-- other_path(paths, user, counted, now)  the letter of such a key, nil = none. paths: by person key,
--   "user|permits" as path/lua/buyers.lua notes it in the hash "persons" of the expiries of a sale, or
--   the user alone for a token of this call
local function other_path(paths, user, counted, now)
  for at = 1, #counted, 18 do -- a key has 17 characters
    local noted = paths[string.sub(counted, at, at + 16)]
    if noted then
      local other, permits = string.match(noted, '^([^|]+)|?(.*)$')
      if other ~= user and (permits == '' or tonumber(redis.call('ZSCORE', permits, other) or '0') > now) then
        return string.sub(counted, at, at)
      end
    end
  end
end

