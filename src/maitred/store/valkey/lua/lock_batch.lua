-- lock_batch: locks the oldest batch that has work and no live lock; a report is sent after all other work.
-- args: now, dice, owner, token
-- answers: {head, submission, report, id, 'expand', 'report' or 'send'} or '' if there is none
-- flags: allow-oom
local function first_open(q, ids)
  for _, id in ipairs(ids) do
    local b = batch.at(q, id)
    if b and (b.token == '' or b.locked <= q.now) then return b end
  end
end

verb.lock_batch = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local b = first_open(q, call('ZRANGE', q.prefix .. K.BatchWork, 0, C.MOST_LOCKED))
  local work = b and (batch.is_frozen(b) and 'report' or 'expand')
  if not b then
    b = first_open(q, call('ZRANGEBYSCORE', q.prefix .. K.BatchSend, '-inf', q.now, 'LIMIT', 0, C.MOST_LOCKED))
    work = 'send'
  end
  if b then
    b.owner, b.token, b.locked, b.dirty = args[3], args[4], q.now + q.settings.lease, true
  end
  finish_verb(q)
  if not b then return '' end
  local got = call('HMGET', q.prefix .. K.Batches, b.id, 's' .. b.id)
  -- Only whoever sends the report needs it, and it may be long.
  local report = work == 'send' and call('HGET', q.prefix .. K.Batches, 'r' .. b.id)
  return { b.id, got[1], got[2] or '', report or '', work }
end
