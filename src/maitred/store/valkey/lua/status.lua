-- status: shows the queue: counts, slots, workers, settings, and why it is paused.
-- args: now, dice
-- answers: {now, paused, limits, used, space, {counts: pending, held, failed, completed, each stage}, jobs, waiting, free,
--   settings, crews, {name, slots, draining, crew, lease end, leases, about, …}, {flag, who holds it and why, …}}
-- flags: no-writes
verb.status = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local flat, workers = call('ZRANGE', q.prefix .. K.Workers, 0, -1, 'WITHSCORES'), {}
  for i = 1, #flat, 2 do
    local w = worker_at(q, flat[i])
    if w then
      for _, fact in ipairs({ w.name, w.slots, w.draining and 1 or 0, w.crew, tonumber(flat[i + 1]), w.busy,
        call('HGET', q.prefix .. K.About, w.name) or '' }) do
        workers[#workers + 1] = fact
      end
    end
  end
  return page(q, q.counts, call('HLEN', q.prefix .. K.Ids), q.waiting, q.free,
    call('GET', q.prefix .. K.Settings), call('GET', q.prefix .. K.Crews) or '{}', workers,
    q.flags > 0 and call('HGETALL', q.prefix .. K.Holds) or {})
end
