-- check_output: looks at one page of what runs said and left behind for broken invariants, and repairs what it finds if
-- asked.
-- args: now, dice, part, cursor ('0' to begin), page size, '1' to repair
-- answers: as check does
-- flags: allow-oom
local PARTS = {}

-- Looks at all keys of one kind by the record that they are of, page by page.
local function each_record(q, name, cursor, size, look)
  local next_cursor, found = checking.scan_keys(q, name, cursor, size)
  for _, key in ipairs(found) do look(key, string.sub(key, #q.prefix + #name + 1)) end
  return next_cursor, #found
end

-- The last pieces without a gap between them, and what they count; the others go.
local function begin_anew(key)
  local there, last = {}, 0
  for _, field in ipairs(call('HKEYS', key)) do
    local number = tonumber(field)
    if number then there[number], last = true, math.max(last, number) end
  end
  local first, size, strays = last + 1, 0, {}
  while there[first - 1] do
    first = first - 1
    size = size + speech.cost(key, string.format('%d', first))
    there[first] = nil
  end
  for number in pairs(there) do strays[#strays + 1] = string.format('%d', number) end
  take_out('HDEL', key, strays)
  speech.set_head(key, first, last, size)
end

-- Counting the bytes again takes some microseconds per piece: it is done for so many.
local function is_whole(key)
  local first, last, size = speech.head(key)
  local count = last - first + 1
  if call('HLEN', key) ~= count + 1 then return false end
  if count > checking.MOST_RECOUNTED then return true end
  for number = first, last do
    local text = string.format('%d', number)
    if call('HEXISTS', key, text) == 0 then return false end
    size = size - speech.cost(key, text)
  end
  return size == 0
end

PARTS.outputs = function(q, cursor, size)
  return each_record(q, K.Output, cursor, size, function(key, record)
    local r = job_at(q, record)
    if not r then
      checking.fault(q, 'output', checking.record(record) .. ' said something and is not kept', function()
        call('UNLINK', key)
      end)
    elseif not is_whole(key) then
      checking.fault(q, 'output', 'what ' .. checking.named(r) .. ' said has gaps or is counted wrongly', function()
        begin_anew(key)
      end)
    end
  end)
end

-- The files that a job names, with their entries.
local function named_by(x)
  local names, at = {}, 1
  while at <= #x.artifacts do
    local name, _, size, after = struct.unpack('<Hc0Hc0d', x.artifacts, at)
    names[#names + 1] = { name = name, size = size, entry = string.sub(x.artifacts, at, after - 1) }
    at = after
  end
  return names
end

PARTS.artifacts = function(q, cursor, size)
  return each_record(q, K.Artifacts, cursor, size, function(key, record)
    local r, known = job_at(q, record), {}
    for _, file in ipairs(r and named_by(extra_of(q, r)) or {}) do known[file.name] = true end
    for _, name in ipairs(call('HKEYS', key)) do
      if not known[name] then
        checking.fault(q, 'artifact', checking.record(record) .. ' does not name ' .. name .. ', which is kept', function()
          call('HDEL', key, name)
        end)
      end
    end
  end)
end

local function is_kept(key, file)
  local kept = call('HGET', key, file.name)
  local _, at = struct.unpack('<Hc0', kept or '\0\0')
  return kept and #kept - at + 1 == file.size
end

-- Jobs name only files that are kept.
PARTS.named_artifacts = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.Jobs, cursor, size)
  for i = 1, #flat, 2 do
    local record = #flat[i] == 9 and string.sub(flat[i], 1, 1) == 'x' and string.sub(flat[i], 2)
    local r = record and job_at(q, record)
    local entries, lost = {}, false
    for _, file in ipairs(r and named_by(extra_of(q, r)) or {}) do
      if is_kept(q.prefix .. K.Artifacts .. record, file) then
        entries[#entries + 1] = file.entry
      else
        lost = file.name
      end
    end
    if lost then
      checking.fault(q, 'artifact', checking.named(r) .. ' names ' .. lost .. ', which is not kept', function()
        change_extra(q, r).artifacts = table.concat(entries)
      end)
    end
  end
  return next_cursor, #flat / 2
end

PARTS.about = function(q, cursor, size)
  local next_cursor, flat = checking.scan('HSCAN', q.prefix .. K.About, cursor, size)
  for i = 1, #flat, 2 do
    if call('HEXISTS', q.prefix .. K.WorkerInfo, flat[i]) == 0 then
      checking.fault(q, 'worker', 'worker ' .. flat[i] .. ' said something about itself and is not there', function()
        call('HDEL', q.prefix .. K.About, flat[i])
      end)
    end
  end
  return next_cursor, #flat / 2
end

verb.check_output = function(keys, args)
  return checking.page(PARTS, keys, args)
end
