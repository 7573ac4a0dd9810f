-- seal_batch: closes a batch, or ends its expansion, and closes it if that was asked for.
-- args: now, dice, id, token of the lock ('' for a caller from outside), why it could not be expanded
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.seal_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, token, refusal = batch.at(q, args[3]), args[4], nil
  if token ~= '' and (not b or b.token ~= token) then
    refusal = 'lock-lost'
  elseif not b then
    refusal = 'unknown-batch'
  elseif b.sealed then
    refusal = 'sealed'
  else
    b.modified, b.aged, b.dirty = q.now, q.now, true
    if token ~= '' then
      b.expanding, b.fault = false, args[5]
      b.sealed = b.sealing or args[5] ~= ''
    else
      b.sealing, b.sealed = true, not b.expanding
    end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
