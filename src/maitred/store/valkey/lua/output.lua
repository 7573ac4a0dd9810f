-- output: shows what a job said after a piece, the newest version or the one asked for.
-- args: now, dice, id, version ('' for the newest), number of the piece, how many at most
-- answers: {record, whether it has ended, first number, last number, {number, piece, …}}, or '' for an unknown job
-- flags: no-writes
verb.output = function(keys, args)
  local q, fault = open(keys, args)
  if not q then return fault end
  local r = speech.version(q, args[3], args[4])
  if not r then return '' end
  local key, numbers, list = q.prefix .. K.Output .. r.key, {}, {}
  local first, last = speech.head(key)
  local from = math.max(first, tonumber(args[5]) + 1)
  for number = from, math.min(last, from + tonumber(args[6]) - 1) do
    numbers[#numbers + 1] = string.format('%d', number)
  end
  for i, piece in ipairs(#numbers > 0 and hmget(key, numbers) or {}) do
    if piece then
      list[#list + 1] = from + i - 1
      list[#list + 1] = piece
    end
  end
  return { r.record, r.phase == 'E' and not speech.goes_on(q, r) and 1 or 0, first, last, list }
end
