-- running: shows the jobs that run, each worker's in the order in which they started.
-- args: now, dice
-- answers: {now, paused, limits, used, space, {views}}
-- flags: no-writes
verb.running = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local leases = {}
  for _, name in ipairs(call('ZRANGE', q.prefix .. K.Workers, 0, -1)) do
    for _, lease in ipairs(all_leases({ leases = q.prefix .. K.Leases .. name })) do
      if not SETTLED[lease.stopping] then leases[#leases + 1] = lease end
    end
  end
  table.sort(leases, function(a, b) return a.number < b.number end)
  local records = {}
  for i, lease in ipairs(leases) do records[i] = lease.record end
  return page(q, views(q, records))
end
