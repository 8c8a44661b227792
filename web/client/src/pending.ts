/** The attempt to buy, kept until the server has answered. */
import type { Kept } from './storage.ts';

/** One attempt: what to buy, its idempotency key, and the path token once it is known. */
export interface PendingAttempt {
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

/** The unanswered attempt of a sale. */
export function pendingAttempt(store: Kept, saleId: string): PendingAttempt | null {
  try {
    return JSON.parse(store.getItem(name(saleId)) ?? 'null');
  } catch {
    return null;
  }
}

/** The unanswered attempt for the same item and quantity, else a new one. */
export function beginAttempt(store: Kept, saleId: string, itemId: string, quantity: number): PendingAttempt {
  const before = pendingAttempt(store, saleId);
  if (before?.itemId === itemId && before.quantity === quantity) return before;
  return savePendingAttempt(store, saleId, { itemId, quantity, key: randomKey(), path: null });
}

/** Stores an attempt, so that a reload continues it. */
export function savePendingAttempt(store: Kept, saleId: string, value: PendingAttempt): PendingAttempt {
  store.setItem(name(saleId), JSON.stringify(value));
  return value;
}

/** Removes the attempt: the server has answered. */
export function clearPendingAttempt(store: Kept, saleId: string): void {
  store.removeItem(name(saleId));
}

/** Removes the attempts and tickets of all sales: they are another user's. */
export function forgetAttempts(store: Kept): void {
  for (const name of store.names()) if (/^(press|place):/.test(name)) store.removeItem(name);
}

/** The key of an act on one order, the same until the act is settled. */
export function actionKey(store: Kept, act: string, orderId: string): string {
  const name = `${act}:${orderId}`;
  const before = store.getItem(name);
  if (before) return before;
  const key = randomKey();
  store.setItem(name, key);
  return key;
}

/** Forgets a key of an act: the server has answered for certain. A late answer leaves the key of a newer act. */
export function clearActionKey(store: Kept, act: string, orderId: string, key: string): void {
  if (store.getItem(`${act}:${orderId}`) === key) store.removeItem(`${act}:${orderId}`);
}
