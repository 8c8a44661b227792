/** The attempt to buy, kept until the server has answered. */
import type { Kept } from './storage.ts';

/** One attempt: what to buy, its idempotency key, and the path token once it is known. */
export interface Press {
  itemId: string;
  quantity: number;
  key: string;
  path: { token: string; expiresAt: string } | null;
}

const name = (saleId: string): string => `press:${saleId}`;

/** An idempotency key: 128 random bits as text. crypto.randomUUID is missing on plain http. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The unanswered press of a sale. */
export function pending(store: Kept, saleId: string): Press | null {
  try {
    return JSON.parse(store.getItem(name(saleId)) ?? 'null');
  } catch {
    return null;
  }
}

/** The unanswered attempt for the same item and quantity, else a new one. */
export function press(store: Kept, saleId: string, itemId: string, quantity: number): Press {
  const before = pending(store, saleId);
  if (before?.itemId === itemId && before.quantity === quantity) return before;
  return keep(store, saleId, { itemId, quantity, key: randomKey(), path: null });
}

/** Remembers a press across reloads. */
export function keep(store: Kept, saleId: string, value: Press): Press {
  store.setItem(name(saleId), JSON.stringify(value));
  return value;
}

/** Forgets the press: the server has answered. */
export function settle(store: Kept, saleId: string): void {
  store.removeItem(name(saleId));
}

/** The key of an act on one order, the same until the act is settled. */
export function actKey(store: Kept, act: string, orderId: string): string {
  const name = `${act}:${orderId}`;
  const before = store.getItem(name);
  if (before) return before;
  const key = randomKey();
  store.setItem(name, key);
  return key;
}

/** Forgets the key of an act: the server has answered for certain. */
export function settleAct(store: Kept, act: string, orderId: string): void {
  store.removeItem(`${act}:${orderId}`);
}
