-- batch: shows a batch with its submission and its last report.
-- args: now, dice, id
-- answers: {id, head, submission, report} or '' if there is none
-- flags: no-writes
verb.batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local got = call('HMGET', q.prefix .. K.Batches, args[3], 's' .. args[3], 'r' .. args[3])
  return #args[3] == 13 and got[1] and { args[3], got[1], got[2] or '', got[3] or '' } or ''
end
