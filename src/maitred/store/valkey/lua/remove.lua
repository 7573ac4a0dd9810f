-- remove: deletes all versions of a job: out of line at once, or stopped; afterwards the id is unknown.
-- args: now, dice, id
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
-- A batch keeps the name of a deleted job.
local function strike_out(q, r)
  local b = batch.at(q, extra_of(q, r).batch)
  local row = b and batch.row_at(q, b.id, r.id)
  if row and row.record == r.key then batch.set_row(q, b, r.id, string.rep('\0', 8), row.label, row.reported) end
end

verb.remove = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local all, refusal = versions(q, args[3]), nil
  for _, r in ipairs(all) do
    local b = has(r, EXTRA) and batch.at(q, extra_of(q, r).batch)
    if b and batch.is_frozen(b) then refusal = 'reporting' end
  end
  for _, r in ipairs(refusal and {} or all) do
    counted(q, r, -1)
    if q.news then tell.deleted(q, r) end
    if r.phase == 'W' then
      leave_line(q, r)
    elseif r.phase == 'R' then
      stop(q, r, 'deleted')
    elseif r.phase == 'H' then
      unlist_held(q, r)
    elseif r.phase == 'E' then
      flush(q)
      call('ZREM', q.prefix .. notices.list_of_ended(q, r), r.key)
    end
    return_space(q, r)
    if has(r, EXTRA) then
      call('ZREM', q.prefix .. K.Outbox, r.key)
      notices.drop_deadline(q, r)
      if extra_of(q, r).untold > 0 then notices.drop(q, r.id) end
    end
    strike_out(q, r)
    forget(q, r)
  end
  if #all == 0 then refusal = 'unknown-job' end
  if not refusal then call('HDEL', q.prefix .. K.Ids, args[3]) end
  local _, moment = finish_verb(q)
  return refusal or { moment }
end
