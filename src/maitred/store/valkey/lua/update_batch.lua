-- update_batch: asks for an update report of a failed batch.
-- args: now, dice, id
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.update_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, refusal = batch.at(q, args[3]), 'unknown-batch'
  if b then
    refusal = batch.move(q, b, 'u')
    if not refusal then b.aged = q.now end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
