-- What readers are shown of a job: record, head, body, position, release, nonce, running versions, whether a
-- live worker serves it and has a free slot, of its present run the start, the time granted and the class, what only
-- some jobs have, the reasons that hold it, and whether it has ended before its run.
-- gives: page, view, views, state_of

local function service_of(q, need)
  q.service = q.service or {}
  local known = q.service[need]
  if not known then
    known = { 0, 0 }
    for _, crew in ipairs(q.crews.by_need[need] or {}) do
      local key = q.prefix .. K.Free .. crew
      local top = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
      known[1] = known[1] + call('ZCARD', key)
      known[2] = math.max(known[2], tonumber(top[2]) or 0)
    end
    q.service[need] = known
  end
  return known
end

local function state_of(q, r)
  if r.phase == 'E' then return string.byte(r.tail) > 0 and 'failed' or 'completed' end
  if r.phase == 'H' then return 'held' end
  return r.stage == 0 and 'pending' or q.settings.stages[r.stage]
end

local function running_versions(q, r)
  local list = {}
  for _, version in ipairs(versions(q, r.id)) do
    if version.phase == 'R' then list[#list + 1] = version.version end
  end
  return list
end

local function view(q, r, body, position)
  local release, nonce = -1, -1
  if r.phase == 'W' then
    local arrival
    release, arrival = place_of(q, r)
    nonce = is_own(r) and -1 or arrival
    position = position or places_before(q, r.band, r.priority, release, arrival) + 1
  end
  local started, granted, holding = -1, -1, -1
  local bytes = r.phase == 'R' and call('HGET', q.prefix .. K.Leases .. r.worker, r.key)
  if bytes then
    local lease = decode_lease(bytes)
    started, granted, holding = lease.start, lease.duration, lease.level
  end
  local service = service_of(q, r.need)
  local extra = has(r, EXTRA) and encode_extra(extra_of(q, r)) or ''
  return { r.record, encode_job(r), body or '', position or -1, release, nonce, running_versions(q, r),
    service[1], service[2], started, granted, holding, extra, holds_of(q, r), speech.goes_on(q, r) and 1 or 0 }
end

local function views(q, records, first_position)
  local list = {}
  if #records == 0 then return list end
  local bodies = load_whole(q, records)
  for i, record in ipairs(records) do
    local r = q.jobs[record]
    if r then list[#list + 1] = view(q, r, bodies[i], first_position and first_position + i - 1) end
  end
  return list
end

-- Begins every reader's answer: the time, who paused the queue and when ('' if nobody, nothing if that was lost), the
-- units of each level, with how many are taken, and the space that is left ('' without a budget).
local function page(q, ...)
  return { q.now, q.paused and (call('GET', q.prefix .. K.Paused) or '0 {}') or '', limits_of(q), q.used,
    q.settings.space > 0 and q.settings.space - q.space_used or '', ... }
end
