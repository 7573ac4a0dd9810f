-- unhold: takes a hold away; whoever has no other reason to be held comes back, a bounded number at once.
-- args: now, dice, kind, name
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
local function unhold_one(q, id)
  local r = newest_of(q, id)
  if not r then return 'unknown-job' end
  if extra_of(q, r).hold == '' then return 'not-held' end
  change_extra(q, r).hold = ''
  if r.phase == 'H' then
    unlist_held(q, r)
    stand(q, r)
  end
end

local function unhold_batch(q, id)
  local b = batch.at(q, id)
  if not b then return 'unknown-batch' end
  if not lower_flag(q, 'batch:' .. id) then return 'not-held' end
  return batch.move(q, b, (b.sealed or b.rows > 0) and 'w' or 'p')
end

verb.unhold = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local kind, name, refusal = args[3], args[4], nil
  if kind == 'job' then
    refusal = unhold_one(q, name)
  elseif kind == 'batch' and q.settings.ledger == '' then
    refusal = unhold_batch(q, name)
  else
    lower_flag(q, kind .. ':' .. name)
  end
  if kind ~= 'job' and not refusal then let_return(q) end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
