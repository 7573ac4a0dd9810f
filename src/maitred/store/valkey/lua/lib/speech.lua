-- What runs say. `Output.<record>` is a hash of pieces by number; its field '' has the numbers of the first and the last
-- piece that are kept, what they count, the token of the run that spoke last, and how many parts it has said (what is
-- told again may have been heard). A piece is when it was said, the attempt, stream, bytes cut, then the data.
-- gives: speech

speech = {}

local STREAM_HEAD, SAID, PIECE_HEAD = '<dddc16d', '<dH', 19
local NOBODY = string.rep('\0', 16)

-- Walks through what a run says, past the parts that are known: a byte that tells whether progress is in it, then
-- stream, cut and data of each part. Answers the new pieces, the last progress in them, and how many parts there are.
local function pieces(q, attempt, words, known)
  local said, found, at, progress, count = struct.pack(SAID, q.now, attempt), {}, 2, nil, 0
  while at <= #words do
    local stream, cut, data, after = struct.unpack('<BdI4c0', words, at)
    count = count + 1
    if count > known then
      found[#found + 1] = said .. struct.pack('<Bd', stream, cut) .. data
      if stream == C.PROGRESS then progress = data end
    end
    at = after
  end
  return found, progress, count
end

-- What a piece counts.
function speech.cost(key, number)
  return call('HSTRLEN', key, number) - PIECE_HEAD + C.PIECE_COST
end

-- Drops the oldest pieces while there is too much, a bounded number of them.
local function trim(key, first, last, size, most, left)
  local dropped = {}
  while size > most and first <= last and left > 0 do
    local number = string.format('%d', first)
    size = size - speech.cost(key, number)
    dropped[#dropped + 1] = number
    first, left = first + 1, left - 1
  end
  take_out('HDEL', key, dropped)
  return first, size
end

function speech.head(key)
  local head = call('HGET', key, '')
  if not head then return 1, 0, 0, NOBODY, 0 end
  return struct.unpack(STREAM_HEAD, head)
end

function speech.set_head(key, first, last, size, speaker, heard)
  call('HSET', key, '', struct.pack(STREAM_HEAD, first, last, size, speaker or NOBODY, heard or 0))
end

-- Appends what a run says, after so many parts that it has said before; last words have no number. Answers the last
-- progress in it, if there is any.
function speech.add(q, record, attempt, words, token, before)
  if #words < 2 and not token then return nil end
  local key, fields = q.prefix .. K.Output .. record, {}
  local first, last, size, speaker, heard = speech.head(key)
  local known = token and token == speaker and heard or 0
  local found, progress, count = pieces(q, attempt, words, token and known - before or 0)
  if token then speaker, heard = token, math.max(known, before + count) end
  for _, piece in ipairs(found) do
    last, size = last + 1, size + #piece - PIECE_HEAD + C.PIECE_COST
    fields[#fields + 1] = string.format('%d', last)
    fields[#fields + 1] = piece
  end
  if #found > 0 then
    write_hash(key, fields)
    first, size = trim(key, first, last, size, q.settings.output_limit, C.DROPPED_PER_SAYING + #found)
  end
  speech.set_head(key, first, last, size, speaker, heard)
  if q.news and #found > 0 then tell.said(q, record, last - #found + 1, last) end
  return progress
end

-- The same for a job's present run; how far it says that it is stands in the job too.
function speech.say(q, r, words, token, before)
  local progress = speech.add(q, r.key, r.attempt, words, token, before)
  if progress then change_extra(q, r).progress = progress end
end

-- Whether a job has ended, and its run has not yet.
function speech.goes_on(q, r)
  return r.phase == 'E' and q.stops > 0 and call('HEXISTS', q.prefix .. K.Stopping, r.key) == 1
end

-- The job that a run speaks for: one that was cancelled is so until it goes on; nil if it is no longer the run's.
function speech.job_of(q, w, lease)
  local r = job_at(q, lease.record)
  if not r or not SETTLED[lease.stopping] then return r end
  return lease.stopping == 'cancelled' and r.phase == 'E' and r.worker == w.name and r or nil
end

-- Adds what a cancelled run had done to its record; how and when that ended stays as it is.
function speech.add_to_end(q, w, lease, words, result)
  local r = speech.job_of(q, w, lease)
  if not r then return end
  speech.say(q, r, words)
  local code, message, known, at = struct.unpack(END, r.tail)
  if known == '' and result ~= '' and not q.settings.staged then
    r.tail = struct.pack(END, #code, code, #message, message, #result, result) .. string.sub(r.tail, at)
    touch(q, r)
  end
end

-- A version of a job, the newest for ''; nil if there is none.
function speech.version(q, id, version)
  for _, r in ipairs(versions(q, id)) do
    if version == '' or tonumber(version) == r.version then return r end
  end
end
