-- append_orders(stream, sum, field, items) appends one message with the orders that a
-- call took. stream and sum are keys; field has the names of the stream's fields for
-- message id and payload, and the traces of the orders, if there are any; items has for each item { sale, id, epoch, terms, users,
-- reservations, origins }, the reservations as written to the hash: "task|quantity|at|key"; origins is empty when none is known. Package
-- order documents and decodes the payload. The message id is the first task.
local function append_orders(stream, sum, field, items)
  local lines, origins, n, id = { 'v2' }, {}, 0, nil
  for _, it in ipairs(items) do
    if #it.users > 0 then
      lines[#lines + 1] = '@' .. it.sale .. '|' .. it.id .. '|' .. it.epoch .. '|' .. it.terms
      id = id or string.match(it.reservations[1], '^[^|]*')
      for u, user in ipairs(it.users) do
        lines[#lines + 1] = user .. '|' .. it.reservations[u]
        origins[#origins + 1] = it.origins[u]
      end
      n = n + #it.users
    end
  end
  if n > 0 then
    local payload = table.concat(lines, '\n')
    local fields = { field[1], id, field[2], payload }
    if (field[3] or '') ~= '' then
      fields[5], fields[6] = 'trace', field[3]
    end
    if #origins > 0 then
      fields[#fields + 1], fields[#fields + 2] = 'origins', table.concat(origins)
    end
    append_message(stream, sum, n, unpack(fields))
  end
end

