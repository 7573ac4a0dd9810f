-- What the verbs that check share. They look at one page of the queue for broken invariants, and repair what they find
-- if asked. Every rule is local to what one page reads, so that pages may be looked at one after another on a live queue.
-- gives: checking

checking = {}

-- Counting again blocks the store for some microseconds per job: it is done for so many, and above that only sums are
-- compared.
checking.MOST_RECOUNTED = 5000

function checking.fault(q, code, text, repair)
  local list = q.faults
  if q.repair and repair then repair() end
  list[#list + 1] = code
  list[#list + 1] = text
  list[#list + 1] = q.repair and repair and 1 or 0
end

function checking.whole(number)
  return string.format('%.0f', number)
end

function checking.record(key)
  return 'record ' .. checking.whole(number8(key))
end

function checking.named(r)
  return 'job ' .. r.id .. ' (version ' .. r.version .. ')'
end

function checking.list_again(q, lane)
  if not q.lanes.by_name[lane] then list_lane(q, lane) end
end

function checking.scan(command, key, cursor, size)
  local got = call(command, key, cursor, 'COUNT', size)
  return got[1] == '0' and '' or got[1], got[2]
end

-- The keys of one kind, page by page.
function checking.scan_keys(q, name, cursor, size)
  local got = call('SCAN', cursor, 'MATCH', q.prefix .. name .. '*', 'COUNT', size)
  return got[1] == '0' and '' or got[1], got[2]
end

-- Looks at all sorted sets of one kind, page by page. Of one that does not fit into the page the caller gets a cursor
-- of its own, `@rank key`.
function checking.each_set(q, name, cursor, size, look)
  local rank, key = string.match(cursor, '^@(%d+) (.*)$')
  if rank then
    local first = tonumber(rank)
    local members = call('ZRANGE', key, first, first + size - 1)
    look(key, members)
    return #members == size and '@' .. (first + size) .. ' ' .. key or '', #members
  end
  local next_cursor, keys = checking.scan_keys(q, name, cursor, size)
  local seen = 0
  for _, found in ipairs(keys) do
    local count = call('ZCARD', found)
    if seen + count <= size then
      look(found, call('ZRANGE', found, 0, -1))
      seen = seen + count
    else
      q.long[#q.long + 1] = '@0 ' .. found
    end
  end
  return next_cursor, seen
end

-- Looks at one page of one sorted set.
function checking.each_member(q, name, cursor, size, look)
  local next_cursor, flat = checking.scan('ZSCAN', q.prefix .. name, cursor, size)
  for i = 1, #flat, 2 do look(flat[i], tonumber(flat[i + 1])) end
  return next_cursor, #flat / 2
end

-- Counts all jobs again, if they are few enough: those in each state, the space that is taken, and of each submitter
-- the waiting jobs that do not count against it.
function checking.recount(q)
  if call('HLEN', q.prefix .. K.Jobs) > 2 * checking.MOST_RECOUNTED then return nil end
  local found = { counts = {}, space = 0, exempt = {} }
  local flat, extras = call('HGETALL', q.prefix .. K.Jobs), {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 1) == 'x' and #flat[i] == 9 then extras[string.sub(flat[i], 2)] = flat[i + 1] end
  end
  for i = 1, #flat, 2 do
    if #flat[i] == 8 then
      local r = decode_job(flat[i], flat[i + 1])
      local at = count_of(r)
      found.counts[at] = (found.counts[at] or 0) + 1
      if has(r, PROVISIONED) and extras[r.key] then found.space = found.space + decode_extra(extras[r.key]).space end
      if has(r, EXEMPT) and r.phase == 'W' then found.exempt[r.submitter] = (found.exempt[r.submitter] or 0) + 1 end
    end
  end
  return found
end

-- One page of a verb that checks: args are now, dice, the part, a cursor ('0' to begin), the page size, '1' to repair.
function checking.page(parts, keys, args)
  local q, refused = open(keys, args)
  if not q then return refused end
  q.faults, q.long, q.repair = {}, {}, args[6] == '1'
  local cursor, seen = parts[args[3]](q, args[4], tonumber(args[5]))
  if q.repair then finish_verb(q) end
  return { cursor, seen, q.faults, q.long }
end
