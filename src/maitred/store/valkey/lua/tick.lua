-- tick: does what the clock asks for: due places, lost workers, expired and old jobs.
-- args: now, dice
-- answers: {next_at, now, idle_until}
-- flags: allow-oom
-- Up to when there is nothing to do if nothing happens: now, while a batch has work or somebody is to be told; -1 for ever.
local function idle_until(q, moment)
  local lists, ages = { q.prefix .. K.NoticesDue }, { K.Ended }
  if q.batches_made > 0 then
    lists, ages = { lists[1], q.prefix .. K.BatchWork, q.prefix .. K.BatchSend }, { K.Ended, K.BatchAge }
  end
  if call('EXISTS', unpack(lists)) > 0 then return q.now end
  local first = moment < 0 and NEVER or moment
  for _, name in ipairs(ages) do
    local age = call('ZRANGE', q.prefix .. name, 0, 0, 'WITHSCORES')[2]
    if age then first = math.min(first, age + q.settings.retention) end
  end
  return first < NEVER and first or -1
end

verb.tick = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  catch_up(q)
  local swept = sweep(q, C.SWEPT_PER_TICK)
  local _, moment = finish_verb(q)
  if swept == C.SWEPT_PER_TICK then moment = q.now end
  return { moment, q.now, idle_until(q, moment) }
end
