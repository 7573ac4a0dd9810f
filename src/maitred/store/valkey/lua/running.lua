-- running: shows the jobs that run, each worker's in the order in which they started.
-- args: now, dice
-- answers: {now, paused, {views}, {start of each}}
-- flags: no-writes
verb.running = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local leases = {}
  for _, name in ipairs(call('ZRANGE', q.prefix .. K.Workers, 0, -1)) do
    for _, lease in ipairs(all_leases({ leases = q.prefix .. K.Leases .. name })) do
      if lease.stopping == '' then leases[#leases + 1] = lease end
    end
  end
  table.sort(leases, function(a, b) return a.number < b.number end)
  local list, starts = {}, {}
  for _, lease in ipairs(leases) do
    local shown = views(q, { lease.record })[1]
    if shown then
      list[#list + 1] = shown
      starts[#starts + 1] = lease.start
    end
  end
  return page(q, list, starts)
end
