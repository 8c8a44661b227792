/** The statuses that a user must not miss, shared between tabs and shown on every page. */
import { computed, signal } from '@preact/signals';
import { now, second } from '../api/clock';
import { onUserChange } from '../api/session';
import { persistentStore } from '../api/storage';
import type { Money } from '@seckill/client/types';

/** A status of a sale that needs attention or runs out. */
export interface Shared {
  saleId: string;
  title: string;
  /** The slug of the sale. */
  slug: string;
  /** The order that is to be paid; null where the status belongs to the page of the sale. */
  orderId: string | null;
  kind: 'joined' | 'room' | 'turn' | 'offer' | 'queue' | 'pay';
  /** Server time in ms after which the status is gone; null where it has no end. */
  until: number | null;
  /** What is to be paid. */
  amount: Money | null;
}

const STORE = 'status';
/** A status without a deadline is dropped this long after it was written, in ms: its tab may be closed. */
const STALE_MS = 60_000;

type Stored = Shared & { at: number };

function read(): Stored[] {
  try {
    return JSON.parse(persistentStore.getItem(STORE) ?? '[]');
  } catch {
    return [];
  }
}

const all = signal<Stored[]>(read());
addEventListener('storage', ({ key }) => key === STORE && (all.value = read()));

function write(next: Stored[]): void {
  all.value = next;
  if (next.length) persistentStore.setItem(STORE, JSON.stringify(next));
  else persistentStore.removeItem(STORE);
}

/** Shares the status of a sale; null withdraws it. */
export function share(saleId: string, status: Omit<Shared, 'saleId'> | null): void {
  const others = read().filter((each) => each.saleId !== saleId);
  if (status) write([...others, { ...status, saleId, at: now() }]);
  else if (others.length !== all.peek().length) write(others);
}

/** Withdraws the status of an order that awaits no payment any more. */
export function withdraw(orderId: string): void {
  const before = read();
  const left = before.filter((each) => each.orderId !== orderId);
  if (left.length < before.length) write(left);
}

const urgency: Record<Shared['kind'], number> = { turn: 0, offer: 1, pay: 2, queue: 3, room: 4, joined: 5 };

/** The most urgent status that still holds; null where there is none. */
export const urgent = computed<Shared | null>(() => {
  void second.value;
  const holds = ({ until, at }: Stored): boolean => now() < (until ?? at + STALE_MS);
  return all.value.filter(holds).sort((a, b) => urgency[a.kind] - urgency[b.kind])[0] ?? null;
});

onUserChange(() => write([]));
