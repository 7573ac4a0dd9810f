-- records: shows jobs by the keys of their records; one that is gone is left out.
-- args: now, dice, then the records
-- answers: {now, paused, limits, used, space, {views}, number of the last entry of `Events`}
-- flags: no-writes
verb.records = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local list = {}
  for i = 3, #args do list[i - 2] = args[i] end
  return page(q, views(q, list), q.told)
end
