-- survey: what a server needs to foresee starts: the floor, the lanes and how many stand there. Whoever asks is
-- listening from now on, so what changes afterwards is in `Events`, after the id that is answered.
-- args: now, dice, how long changes are told from now on
-- answers: {now, paused, limits, used, space, settings, {id of the last entry, its number}, waiting, {what each crew with a
--   live worker serves}, {lane, places, …}, {record, lease, need, draining, …}}
-- flags: allow-oom
local function last_entry(q)
  local last = call('XREVRANGE', q.prefix .. K.Events, '+', '-', 'COUNT', 1)[1]
  return last and last[1] or '0-0'
end

verb.survey = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  -- What changed while nobody listened was not told: a gap in the numbers before this entry says so.
  if q.now >= q.listened_until then
    q.told, q.news = q.told + 1, {}
    tell.house(q)
  end
  q.listened_until = q.now + tonumber(args[3])
  local places, runs, crews = {}, {}, {}
  for _, lane in ipairs(lanes(q)) do
    places[#places + 1] = lane.name
    places[#places + 1] = call('ZCARD', lane.key)
  end
  for crew in pairs(q.crews.list) do
    if call('EXISTS', q.prefix .. K.Free .. crew) == 1 then crews[#crews + 1] = q.crews.list[crew] end
  end
  for _, name in ipairs(call('ZRANGE', q.prefix .. K.Workers, 0, -1)) do
    local w = worker_at(q, name)
    for _, lease in ipairs(w and all_leases(w) or {}) do
      local r = job_at(q, lease.record)
      runs[#runs + 1] = lease.record
      runs[#runs + 1] = encode_lease(lease)
      runs[#runs + 1] = r and r.need or ''
      runs[#runs + 1] = w.draining and 1 or 0
    end
  end
  close(q)
  local entry = last_entry(q)
  return page(q, call('GET', q.prefix .. K.Settings), { entry, q.told }, q.waiting, crews, places, runs)
end
