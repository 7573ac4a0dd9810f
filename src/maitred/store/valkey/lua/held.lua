-- held: shows held jobs, oldest first.
-- args: now, dice, how many to pass over, how many to show
-- answers: {now, paused, limits, used, space, {views}, how many there are}
-- flags: no-writes
verb.held = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local first, key = tonumber(args[3]), q.prefix .. K.Held
  local records = call('ZRANGE', key, first, first + tonumber(args[4]) - 1)
  return page(q, views(q, records), call('ZCARD', key))
end
