-- mark_rows: notes the state in which each of these jobs is being reported.
-- args: now, dice, id of the batch, token of its lock, then two for each job: id, state
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.mark_rows = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b, refusal = batch.at(q, args[3]), nil
  if not b or args[4] == '' or b.token ~= args[4] then
    refusal = 'lock-lost'
  else
    for i = 5, #args, 2 do
      local row = batch.row_at(q, b.id, args[i])
      if row then batch.set_row(q, b, args[i], row.record, row.label, args[i + 1]) end
    end
  end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
