-- hold: holds a job at once, or before its next stage; of a batch, submitter or profile, whoever's place comes up.
-- args: now, dice, kind, name, who and why (JSON text)
-- answers: {next_at} or the code of a refusal
-- flags:
local function hold_one(q, id, text)
  local r = newest_of(q, id)
  if not r then return 'unknown-job' end
  if r.phase == 'E' then return 'ended' end
  if r.band == INTERACTIVE then return 'interactive' end
  if r.phase == 'W' then
    leave_line(q, r)
    set_held(q, r, 'job')
  end
  change_extra(q, r).hold = text
end

local function hold_batch(q, id)
  local b = batch.at(q, id)
  if not b then return 'unknown-batch' end
  return batch.move(q, b, 'h')
end

verb.hold = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local kind, name, text, refusal = args[3], args[4], q.now_text .. ' ' .. args[5], nil
  if kind == 'job' then
    refusal = hold_one(q, name, text)
  else
    if kind == 'batch' and q.settings.ledger == '' then refusal = hold_batch(q, name) end
    if not refusal then raise_flag(q, kind .. ':' .. name, text) end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
