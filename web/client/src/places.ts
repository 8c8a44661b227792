/** Places in waiting rooms, kept across reloads. */
import type { Kept } from './storage.ts';

const PLACE = 'place:';

/** A place in the waiting room, until its turn is used or has expired. */
export interface Place {
  ticketId: string;
  itemId: string;
  /** The title of the sale, as far as it is known. */
  title: string;
  /** The slug of the sale, as far as it is known. */
  slug: string;
  /** Whether the button was pressed: then the order is sent when the turn comes. */
  pressed: boolean;
  /** The nonce of its number in the draw; see verifyDraw. */
  nonce?: string;
}

/** The place in the waiting room of a sale. */
export function place(store: Kept, saleId: string): Place | null {
  try {
    return JSON.parse(store.getItem(PLACE + saleId) ?? 'null');
  } catch {
    return null;
  }
}

/** The sales in whose waiting rooms there is a place. */
export function waitingFor(store: Kept): string[] {
  return store.names().flatMap((name) => (name.startsWith(PLACE) ? [name.slice(PLACE.length)] : []));
}

/** Remembers the place across reloads, or forgets it. */
export function keepPlace(store: Kept, saleId: string, value: Place | null): void {
  if (value) store.setItem(PLACE + saleId, JSON.stringify(value));
  else store.removeItem(PLACE + saleId);
}
