-- retry: lets a failed job go on at the stage that failed, with a place of its own, now.
-- args: now, dice, id
-- answers: {next_at} or the code of a refusal
-- flags:
local function retry(q, r)
  if r.band == INTERACTIVE then return 'interactive' end
  if r.phase ~= 'E' or string.byte(r.tail) == 0 then return 'not-failed' end
  local x = extra_of(q, r)
  local b = batch.at(q, x.batch)
  if b and batch.is_frozen(b) then return 'reporting' end
  notices.keep_end(q, r)
  flush(q)
  call('ZREM', q.prefix .. notices.list_of_ended(q, r), r.key)
  counted(q, r, -1)
  set_message(r, '')
  -- It may have ended when the queue had other stages.
  r.phase, r.stage = 'W', math.min(r.stage, #q.settings.stages)
  counted(q, r, 1)
  r.retries, r.attempt, r.unspent, r.ended = r.retries + 1, 0, 0, 0
  if r.band == FRONT then r.band = SCHEDULED end
  r.release = q.now
  if q.settings.staged then r.need = STAGE .. q.settings.stages[math.max(r.stage, 1)] end
  if r.expires <= q.now then r.expires = 0 end
  notices.add(q, r, 'r', 'retried')
  stand(q, r)
  notices.set_deadline(q, r)
end

verb.retry = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, refusal = newest_of(q, args[3]), 'unknown-job'
  if r then refusal = retry(q, r) end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
