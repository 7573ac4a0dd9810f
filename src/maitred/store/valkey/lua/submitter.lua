-- submitter: shows what one submitter has in line.
-- args: now, dice, submitter, how many of each kind at the most
-- answers: {now, paused, limits, used, {ids, next to go first}, {nonce, release, …}, recent submissions}
-- flags: no-writes
verb.submitter = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local whose, limit = args[3], tonumber(args[4])
  local records, places = {}, {}
  for _, record in ipairs(call('ZRANGE', q.prefix .. K.Own .. whose, 0, limit - 1)) do
    records[#records + 1] = record
  end
  for _, lane in ipairs(lanes(q)) do
    if lane.band >= SCHEDULED then
      local owner = lane.name .. '/' .. whose
      for _, record in ipairs(call('ZRANGE', q.prefix .. K.SubmitterInfo .. owner, 0, limit - 1)) do
        records[#records + 1] = record
      end
      local flat = call('ZRANGE', q.prefix .. K.Nonces .. owner, 0, limit - 1, 'WITHSCORES')
      for i = 1, #flat, 2 do
        places[#places + 1] = number8(flat[i])
        places[#places + 1] = tonumber(flat[i + 1])
      end
    end
  end
  local ids = {}
  for first = 1, #records, 500 do
    local part = {}
    for i = first, math.min(first + 499, #records) do part[#part + 1] = records[i] end
    load_jobs(q, part)
  end
  for i, record in ipairs(records) do ids[i] = q.jobs[record] and q.jobs[record].id or '' end
  local recent = q.settings.per_recent > 0 and recent_count(q, whose) or 0
  return page(q, ids, places, recent)
end
