-- renew: extends the worker's lease; confirms what it holds, tells what it lost and what it missed. A stopped
-- job that the worker does not know of gives its slot back at once; what was told about the others is told again.
-- args: now, dice, worker, then two for each job that it holds: record, token
-- answers: {known, next_at, {lost records}, {starts, missed ones first}, now}
-- flags: allow-oom
-- What the worker holds and did not name: it never heard of it, so it hears of it now.
local function missed_by(q, w, named)
  local leases, gone, records, starts = all_leases(w), {}, {}, {}
  table.sort(leases, function(a, b) return a.number < b.number end)
  local missing = {}
  for _, lease in ipairs(leases) do
    if not named[lease.record] then
      if lease.stopping == '' then
        missing[#missing + 1] = lease
        records[#records + 1] = lease.record
      else
        gone[#gone + 1] = lease
      end
    end
  end
  give_back(q, w, gone, false)
  if #records > 0 then
    local bodies, data = load_whole(q, records)
    for i, lease in ipairs(missing) do
      local r = q.jobs[lease.record]
      starts[i] = encode_start(r, extra_of(q, r), lease.token, lease.start, lease.duration, bodies[i], data[i])
    end
  end
  return starts
end

verb.renew = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local w = worker_at(q, args[3])
  local leases, lost = held(w, args, 4, 2)
  if not w then return shift(q, nil, lost) end
  extend(q, w)
  local named, count, confirmed = {}, 0, {}
  for _, lease in ipairs(leases) do
    named[lease.record] = true
    count = count + 1
    if lease.confirmed == 0 then
      lease.confirmed = 1
      confirmed[#confirmed + 1] = lease.record
      confirmed[#confirmed + 1] = encode_lease(lease)
    end
    if SETTLED[lease.stopping] then
      lost[#lost + 1] = lease.record
    elseif lease.stopping ~= '' then
      say_stop(q, w.name, lease)
    elseif lease.lowered ~= '' then
      say_lower(q, w.name, lease)
    end
  end
  if #confirmed > 0 then write_hash(w.leases, confirmed) end
  local starts = w.busy > count and missed_by(q, w, named) or {}
  local answer = shift(q, w, lost)
  for _, start in ipairs(answer[4]) do starts[#starts + 1] = start end
  answer[4] = starts
  return answer
end
