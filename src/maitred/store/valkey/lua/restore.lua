-- restore: takes in jobs as the ledger's tree has them, unless what is known here is as new.
-- args: now, dice, then four for each job: its record (as it is kept, without runs), what only some jobs have, its
--   configuration, what its last stage handed on
-- answers: {next_at, one entry per job: 'made', 'changed' or 'ignored'}
-- flags:
local NOBODY = '{"by": "", "reason": ""}'

-- Takes a job out of wherever it is here; a run of it is stopped, since it is not ours any more.
local function take_away(q, r)
  if r.phase == 'W' then
    leave_line(q, r)
  elseif r.phase == 'H' then
    unlist_held(q, r)
  elseif r.phase == 'R' then
    log(q, r, stop(q, r, 'moved'), 'moved')
  else
    flush(q)
    call('ZREM', q.prefix .. notices.list_of_ended(q, r), r.key)
  end
  return_space(q, r)
end

-- Tells the submitter of a job that waits again after the phase in which it was `before`.
local function tell_back_in_line(q, r, before)
  if before == 'R' then
    notices.add(q, r, 'r', 'moved')
  elseif before == 'E' then
    notices.add(q, r, 'r', 'retried')
  end
end

-- Lets a job stand as the tree has it; the tree is not told so again, unless more is decided here. Its submitter is told
-- what is news.
local function put_in_place(q, r, wanted, before)
  local code, message, result = struct.unpack(END, r.tail)
  if wanted == 'E' then
    end_job(q, r, code, message, result, before == 'E')
    if r.phase == wanted then call('ZREM', q.prefix .. K.Outbox, r.key) end
    return
  end
  set_message(r, message)
  if call('HGET', q.prefix .. K.Ids, r.id) ~= r.key then
    supersede(q, r)
  elseif wanted == 'H' then
    tell_back_in_line(q, r, before)
    if not hold_reason(q, r) then change_extra(q, r).hold = q.now_text .. ' ' .. NOBODY end
    set_held(q, r, hold_reason(q, r))
  else
    tell_back_in_line(q, r, before)
    stand(q, r)
  end
  notices.set_deadline(q, r)
  if r.phase == wanted then call('ZREM', q.prefix .. K.Outbox, r.key) end
end

local PLACE_FLAGS = { OWN, BLOCKED, LACKING, PROVISIONED, OLDER }

local function make(q, e, x, newest)
  e.record = next_seq(q)
  e.key = key8(e.record)
  e.previous = newest and newest.record or 0
  q.jobs[e.key] = e
  q.ids[#q.ids + 1] = e.id
  q.ids[#q.ids + 1] = e.key
  write_ids(q)
  if newest then mark(e, OLDER, true) end
  mark(e, EXTRA, false)
  local kept = change_extra(q, e)
  for name, value in pairs(x) do kept[name] = value end
  return e
end

local function bring(q, r, e, x)
  if r.phase == 'E' then notices.keep_end(q, r) end
  take_away(q, r)
  counted(q, r, -1)
  notices.drop_deadline(q, r)
  local _, _, _, at = struct.unpack(END, r.tail)
  r.tail = e.tail .. string.sub(r.tail, at)
  for _, name in ipairs({ 'stage', 'band', 'priority', 'level', 'attempt', 'unspent', 'retries', 'recent', 'release',
    'arrival', 'expires', 'delay', 'ended', 'duration', 'need' }) do
    r[name] = e[name]
  end
  mark(r, ELASTIC, has(e, ELASTIC))
  mark(r, EXEMPT, has(e, EXEMPT))
  local kept = change_extra(q, r)
  local ledger, progress, artifacts, untold = kept.ledger, kept.progress, kept.artifacts, kept.untold
  for name, value in pairs(x) do kept[name] = value end
  kept.ledger, kept.progress, kept.artifacts, kept.untold = ledger, progress, artifacts, untold
end

local function restore(q, bytes, extra, body, data)
  local e, x = decode_job(key8(0), bytes), decode_extra(extra)
  local wanted, all, r = e.phase, versions(q, e.id), nil
  for _, version in ipairs(all) do
    if not r and extra_of(q, version).ledger == x.ledger then r = version end
  end
  local answer, before = 'changed', r and r.phase or wanted == 'E' and 'E' or 'W'
  if r then
    if extra_of(q, r).status >= x.status then return 'ignored' end
    bring(q, r, e, x)
  elseif all[1] and all[1].version >= e.version then
    return 'ignored'
  else
    local newest = all[1]
    if newest and (newest.phase == 'W' or newest.phase == 'H') then
      take_away(q, newest)
      supersede(q, newest)
    end
    r, answer = make(q, e, x, newest), 'made'
  end
  for _, flag in ipairs(PLACE_FLAGS) do
    if flag ~= OLDER then mark(r, flag, false) end
  end
  r.phase, r.worker = 'W', ''
  counted(q, r, 1)
  q.bodies[r.key] = body
  q.data = q.data or {}
  if q.settings.staged then q.data[r.key] = data end
  touch(q, r)
  put_in_place(q, r, wanted, before)
  return answer
end

verb.restore = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local answers = {}
  for i = 3, #args, 4 do answers[#answers + 1] = restore(q, args[i], args[i + 1], args[i + 2], args[i + 3]) end
  local _, moment = finish_verb(q)
  return { moment, unpack(answers) }
end
