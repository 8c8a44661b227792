-- other_path: whether another account of the same person has an unused path token; prepended to the
-- scripts that use it.
--
-- other_path(paths, user, counted, now)  the letter of such a key, nil = none. paths: by person key,
--   "user|permits" as path/lua/buyers.lua notes it in the hash "persons" of the expiries of a sale, or
--   the user alone for a token of this call
local function other_path(paths, user, counted, now)
  for key in string.gmatch(counted, '[^,]+') do
    local other, permits = string.match(paths[key] or '', '^([^|]+)|?(.*)$')
    if other and other ~= user and (permits == '' or tonumber(redis.call('ZSCORE', permits, other) or '0') > now) then
      return string.sub(key, 1, 1)
    end
  end
end

