-- remove_batch: deletes a batch whose jobs have all ended, with its jobs: some at once, the rest with the ticks.
-- args: now, dice, id
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.remove_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, refusal = batch.at(q, args[3]), nil
  if not b then
    refusal = 'unknown-batch'
  elseif batch.unfinished(b) > 0 or b.expanding then
    refusal = 'unfinished'
  elseif batch.is_frozen(b) then
    refusal = 'reporting'
  else
    discard_batch(q, b)
    empty_trash(q, C.ROWS_PER_STEP)
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
