-- The cycle, at the end of every verb: seats whoever can be seated, makes others give way, and says when to look
-- again.
-- gives: cycle, finish_verb, shift

-- Answers what the caller starts; the rest goes into the inboxes of other workers.
local function cycle(q, caller)
  local mine = {}
  q.more, q.overdue_at, q.left = false, NEVER, C.STARTS_PER_CYCLE
  if q.paused then return mine end
  local patient = true
  local again, early, freed
  repeat
    again, early = false, false
    if q.waiting > 0 and q.free > 0 then again, early = seat_all(q, caller, mine, patient) end
    q.more = q.left == 0 and q.free > 0
    freed = not again and not q.more and q.waiting > 0 and reclaim(q, caller)
    patient = again or freed
  until q.more or not (again or freed or early)
  return mine
end

-- The earliest moment after now that matters; now, if a bounded step has more to do; -1 for none.
local function next_at(q)
  local moment = math.min(q.expiry_at, q.lease_at, q.abandon_at)
  if not q.paused then moment = math.min(moment, q.due_at, q.overdue_at) end
  if q.more or q.returning > 0 or q.trash > 0 then moment = q.now end
  return moment < NEVER and moment or -1
end

-- The end of every verb: seat, say when to look again, and wake one worker if that has come forward.
local function finish_verb(q, caller)
  expire_due(q)
  local mine = cycle(q, caller)
  local moment = next_at(q)
  if caller then
    q.alarm = moment < 0 and NEVER or moment
  elseif moment >= 0 and (moment < q.alarm or q.alarm <= q.now) then
    q.alarm = moment
    for crew in pairs(q.crews.list) do
      local name = call('ZREVRANGE', q.prefix .. K.Free .. crew, 0, 0)[1]
      if name then
        send(q, name, 'W')
        break
      end
    end
  end
  if caller then list_free(q, caller) end
  close(q)
  return mine, moment
end

-- The end of a worker's verb: what it lost, and what it starts next.
local function shift(q, w, lost)
  local caller = w and not w.gone and w or nil
  local mine, moment = finish_verb(q, caller)
  return { caller and 1 or 0, moment, lost, mine, q.now }
end
