-- join: lets a worker in with its slots and what it serves, and gives it work.
-- args: now, dice, worker, slots, what it says about itself, needs it serves (sorted, each its own argument)
-- answers: {known, next_at, {lost records}, {starts}, now}
-- flags: allow-oom
local function crew_of(q, needs)
  local text = table.concat(needs, '\n')
  local count = 0
  for crew, list in pairs(q.crews.list) do
    count = count + 1
    if table.concat(list, '\n') == text then return crew end
  end
  local crew, all = tostring(count + 1), {}
  for name, list in pairs(q.crews.list) do all[name] = list end
  all[crew] = needs
  local written = cjson.encode(all)
  call('SET', q.prefix .. K.Crews, written)
  q.crews = remember(written, read_crews)
  return crew
end

verb.join = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  if tonumber(args[4]) > C.MOST_SLOTS then return redis.error_reply('SLOTS a worker has at most ' .. C.MOST_SLOTS) end
  catch_up(q)
  local needs = {}
  for i = 6, #args do needs[#needs + 1] = args[i] end
  local crew = crew_of(q, needs)
  local w = worker_at(q, args[3])
  if w and w.crew ~= crew then
    call('ZREM', q.prefix .. K.Free .. w.crew, w.name)
    set_draining(q, w, true)
  end
  if args[5] ~= '' then
    call('HSET', q.prefix .. K.About, args[3], args[5])
  elseif w then
    call('HDEL', q.prefix .. K.About, args[3])
  end
  w = w or { name = args[3], leases = q.prefix .. K.Leases .. args[3], busy = 0, said = 0, live = 0, draining = false,
    gone = false }
  w.slots, w.crew, w.listed = tonumber(args[4]), crew, false
  set_draining(q, w, false)
  save_worker(q, w)
  tell.house(q)
  extend(q, w)
  settle(q, w)
  w.listed = false
  return shift(q, w, {})
end
