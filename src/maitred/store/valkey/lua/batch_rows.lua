-- batch_rows: shows the jobs of a batch in the order in which they came in.
-- args: now, dice, id, the number of the row to begin after, how many to show
-- answers: {{job id, label, state, message, reported, …}, number to go on after (0 at the end)} or the code of a refusal
-- flags: no-writes
verb.batch_rows = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local id, after, limit = args[3], tonumber(args[4]), tonumber(args[5])
  local b = batch.at(q, id)
  if not b then return 'unknown-batch' end
  local jobs = call('ZRANGE', q.prefix .. K.BatchJobs .. id, after, after + limit - 1)
  local rows, records, found = {}, {}, {}
  for i, job in ipairs(jobs) do
    rows[i] = batch.row_at(q, id, job)
    records[i] = rows[i].record
  end
  load_jobs(q, records)
  for i, job in ipairs(jobs) do
    local r, row, message, _ = q.jobs[records[i]], rows[i], '', nil
    if r then _, message = struct.unpack(END, r.tail) end
    for _, part in ipairs({ job, row.label, r and state_of(q, r) or 'deleted', message, row.reported }) do
      found[#found + 1] = part
    end
  end
  return { found, after + #jobs < b.rows and after + #jobs or 0 }
end
