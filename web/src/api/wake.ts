import { sync } from './clock';
import { client } from './client';

/** After being hidden or asleep for longer than this, in ms, the connection may be dead and the state old. */
const ASLEEP_MS = 10_000;
const HEARTBEAT_MS = 3_000;

const listeners = new Set<() => void>();

/** Calls back when the page wakes up; returns a function that stops that. */
export function onWake(call: () => void): () => void {
  listeners.add(call);
  return () => listeners.delete(call);
}

/** Watches for sleep, a change of network and the page becoming visible. */
export function startWake(): void {
  let seen = Date.now();
  const wake = (): void => {
    seen = Date.now();
    void sync();
    client.renew();
    for (const call of listeners) call();
  };
  setInterval(() => {
    const gap = Date.now() - seen;
    seen = Date.now();
    if (gap > ASLEEP_MS + HEARTBEAT_MS && !document.hidden) wake();
  }, HEARTBEAT_MS);
  let hidden = 0;
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) hidden = Date.now();
    else if (Date.now() - hidden > ASLEEP_MS) wake();
  });
  addEventListener('online', wake);
  addEventListener('pageshow', (event) => event.persisted && wake());
}
