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

const DRAW = 'draw:';

/** The part in a draw, as it was before the opening. It is kept after the place is gone, so that the number can be checked. */
export interface Drawn {
  ticketId: string;
  itemId: string;
  /** The nonce that this client sent. */
  nonce: string;
  /** `SaleItem.draw.commitment` at that time. */
  commitment: string;
}

/** The part in the draw of a sale. */
export function drawn(store: Kept, saleId: string): Drawn | null {
  try {
    return JSON.parse(store.getItem(DRAW + saleId) ?? 'null');
  } catch {
    return null;
  }
}

/** Remembers the part in the draw of a sale. */
export function keepDrawn(store: Kept, saleId: string, value: Drawn): void {
  store.setItem(DRAW + saleId, JSON.stringify(value));
}
