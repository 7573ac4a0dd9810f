-- type_in: tells the worker of a run what somebody types for it, unless it has too much to read already.
-- args: now, dice, record, columns (0 if the terminal is as it was), rows, data
-- answers: {whether it was sent}, or the code of a refusal
-- flags:
verb.type_in = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local r, columns, data, answer = job_at(q, args[3]), tonumber(args[4]), args[6], 'not-running'
  if r and r.phase == 'R' then
    local unread = call('LLEN', q.prefix .. K.Inbox .. r.worker) + #(q.sent[r.worker] or NOTHING)
    answer = { unread < C.UNREAD_BEFORE_TYPED and 1 or 0 }
    if answer[1] == 1 and (columns > 0 or data ~= '') then
      local lease = lease_of(q, r.worker, r.key)
      send(q, r.worker, struct.pack('<c1c8c16HH', 'T', r.key, lease.token, columns, tonumber(args[5])) .. data)
    end
  end
  finish_verb(q)
  return answer
end
