-- delay: moves a scheduled or bulk job behind all of its band and priority: the last release and 10 s, the
-- bottom of its stack, the same nonce.
-- args: now, dice, id, nonce ('' for any)
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
local function last_release(q, band, priority, release)
  local last, group = math.max(release, q.now), band * 100 + priority
  for _, lane in ipairs(lanes(q)) do
    if lane.group == group then
      local member = call('ZRANGE', lane.key, -1, -1)[1]
      if member then last = math.max(last, number8(member)) end
    end
  end
  return last
end

verb.delay = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, refusal = movable(q, args[3], args[4])
  if r then
    local own = is_own(r)
    local release, arrival = place_of(q, r)
    leave_line(q, r)
    r.release, r.arrival = last_release(q, r.band, r.priority, release) + C.DELAY_STEP, arrival
    if own then
      join_own(q, r)
    else
      join_line(q, r)
      flush(q)
      call('ZADD', q.prefix .. K.SubmitterInfo .. lane_of(r) .. '/' .. r.submitter, next_seq(q), r.key)
    end
    touch(q, r)
    if q.news then tell.changed(q, r) end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
