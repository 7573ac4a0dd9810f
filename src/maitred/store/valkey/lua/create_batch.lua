-- create_batch: makes a batch, or gives the submitter's that has this external id.
-- args: now, dice, external id ('' for none), submitter, profile, submission, '1' if it has jobs to be expanded, '1' to seal it
-- answers: {id, 1 if it was made} or the code of a refusal
-- flags:
local function make(q, args)
  local id = string.format('bid%010d', q.batches_made)
  local expanding, sealing = args[7] == '1', args[8] == '1'
  local b = { id = id, state = 'p', sealed = sealing and not expanding, sealing = sealing, expanding = expanding,
    unsent = false, created = q.now, modified = q.now, aged = q.now, sequence = 0, tries = 0, try_at = 0, locked = 0,
    counts = { 0, 0, 0, 0, 0, 0 }, rows = 0, external = args[3], submitter = args[4], profile = args[5], fault = '',
    owner = '', token = '', dirty = true, named = {}, was = { work = false, unsent = false, try_at = 0, aged = -1 } }
  q.batches, q.rows = q.batches or {}, q.rows or {}
  q.batches[id] = b
  q.batches_made = q.batches_made + 1
  call('ZADD', q.prefix .. K.BatchList, batch.number(id), id)
  call('HSET', q.prefix .. K.Batches, 's' .. id, args[6])
  if args[3] ~= '' then call('HSET', q.prefix .. K.BatchIds, args[3], id) end
  return id
end

verb.create_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local known = args[3] ~= '' and call('HGET', q.prefix .. K.BatchIds, args[3])
  local others = known and batch.at(q, known).submitter ~= args[4]
  local id = known or make(q, args)
  finish_verb(q)
  return others and 'other-submitter' or { id, known and 0 or 1 }
end
