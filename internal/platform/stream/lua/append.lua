-- append_message(stream, sum, n, …) appends an entry with the fields …, a message of n
-- orders. The entry also has orders, which is n, and orders_sum: the orders appended to the
-- stream so far, these included, which the key sum counts. The difference of two sums is
-- the number of orders between two entries.
local function append_message(stream, sum, n, ...)
  return redis.call('XADD', stream, '*', 'orders', n, 'orders_sum', redis.call('INCRBY', sum, n), ...)
end
