-- ended: shows ended jobs, last first; those that are kept with their batch come after the others.
-- args: now, dice, how many to pass over, how many to show
-- answers: {now, paused, limits, used, space, {views}, how many there are}
-- flags: no-writes
verb.ended = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local first, want, total, records = tonumber(args[3]), tonumber(args[4]), 0, {}
  for _, name in ipairs({ K.Ended, K.Kept }) do
    local key = q.prefix .. name
    local count = call('ZCARD', key)
    if want > 0 and first < count then
      for _, record in ipairs(call('ZREVRANGE', key, first, first + want - 1)) do records[#records + 1] = record end
    end
    want = tonumber(args[4]) - #records
    first, total = math.max(0, first - count), total + count
  end
  return page(q, views(q, records), total)
end
