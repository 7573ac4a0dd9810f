-- keep_batch: keeps the lock on a batch for as long as a lease from now, or gives it up.
-- args: now, dice, id, token, '1' to give it up
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.keep_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, refusal = batch.at(q, args[3]), nil
  if not b or args[4] == '' or b.token ~= args[4] then
    refusal = 'lock-lost'
  elseif args[5] == '1' then
    b.owner, b.token, b.locked, b.dirty = '', '', 0, true
  else
    b.locked, b.dirty = q.now + q.settings.lease, true
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
