// A Node program's side of the conversation with the harness, the twin of desk.py, and the clock that all share.
import { createRequire } from 'node:module';
import net from 'node:net';
import readline from 'node:readline';

// Packages lie in an environment of their own, not beside this file, so they are loaded from there.
export const load = createRequire(process.env.BENCH_MODULES);

export const now = () => process.hrtime.bigint();

export async function connect() {
  const socket = net.connect(process.env.BENCH_DESK);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  socket.once('close', () => process.exit(0));
  return {
    say: message => socket.write(JSON.stringify(message) + '\n'),
    requests: async function* () {
      for await (const line of readline.createInterface({ input: socket })) yield JSON.parse(line);
    },
  };
}
