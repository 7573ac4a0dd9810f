-- report_batch: stores a report and ends the batch as its jobs did, in one step.
-- args: now, dice, id, token of the lock, report, '1' if it is to be sent
-- answers: {state} or the code of a refusal
-- flags: allow-oom
verb.report_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b = batch.at(q, args[3])
  local refusal
  if not b or args[4] == '' or b.token ~= args[4] then
    refusal = 'lock-lost'
  elseif b.state == 'u' and batch.unfinished(b) > 0 then
    refusal = 'unfinished'
  else
    refusal = batch.move(q, b, (b.counts[4] > 0 or b.fault ~= '') and 'f' or 'c')
  end
  if not refusal then
    b.unsent = args[6] == '1'
    b.aged, b.sequence, b.tries, b.try_at = q.now, b.sequence + 1, 0, b.unsent and q.now or 0
    call('HSET', q.prefix .. K.Batches, 'r' .. b.id, args[5])
  end
  finish_verb(q)
  return refusal or { b.state }
end
