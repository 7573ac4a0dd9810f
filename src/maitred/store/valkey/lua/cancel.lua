-- cancel: ends all versions that have not ended, as failed with code `cancelled`.
-- args: now, dice, id, message
-- answers: {next_at} or the code of a refusal
-- flags: allow-oom
verb.cancel = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local all, live = versions(q, args[3]), 0
  for _, r in ipairs(all) do
    if r.phase ~= 'E' then
      live = live + 1
      cancel_job(q, r, 'cancelled', args[4])
    end
  end
  local _, moment = finish_verb(q)
  if #all == 0 then return 'unknown-job' end
  return live > 0 and { moment } or 'ended'
end
