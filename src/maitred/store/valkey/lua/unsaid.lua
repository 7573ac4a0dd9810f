-- unsaid: shows what was decided here and the ledger's tree has not heard of yet.
-- args: now, dice, how many to show
-- answers: {now, paused, limits, used, space, {views}, {ledger ids of swept jobs}}
-- flags: no-writes
verb.unsaid = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local last = tonumber(args[3]) - 1
  local records = call('ZRANGE', q.prefix .. K.Outbox, 0, last)
  return page(q, views(q, records), call('LRANGE', q.prefix .. K.Gone, 0, last))
end
