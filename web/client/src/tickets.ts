/** Tickets of waiting rooms, kept across reloads. */
import type { Kept } from './storage.ts';

const PLACE = 'place:';

/** A ticket of a waiting room, until its admission is used or has expired. */
export interface StoredTicket {
  ticketId: string;
  itemId: string;
  /** The title of the sale, as far as it is known. */
  title: string;
  /** The slug of the sale, as far as it is known. */
  slug: string;
  /** Whether the buyer has clicked: then the order is sent after the admission. */
  pressed: boolean;
  /** The nonce of its number in the draw; see verifyDraw. */
  nonce?: string;
}

/** The ticket of the waiting room of a sale. */
export function storedTicket(store: Kept, saleId: string): StoredTicket | null {
  try {
    return JSON.parse(store.getItem(PLACE + saleId) ?? 'null');
  } catch {
    return null;
  }
}

/** The sales with a ticket. */
export function salesWithTicket(store: Kept): string[] {
  return store.names().flatMap((name) => (name.startsWith(PLACE) ? [name.slice(PLACE.length)] : []));
}

/** Stores the ticket, so that a reload keeps it, or removes it. */
export function storeTicket(store: Kept, saleId: string, value: StoredTicket | null): void {
  if (value) store.setItem(PLACE + saleId, JSON.stringify(value));
  else store.removeItem(PLACE + saleId);
}

const DRAW = 'draw:';

/** The user's entry in a draw, as of before the opening. It is kept after the ticket has ended, so that the number can be checked. */
export interface DrawEntry {
  ticketId: string;
  itemId: string;
  /** The nonce that this client sent. */
  nonce: string;
  /** `SaleItem.draw.commitment` at that time. */
  commitment: string;
}

/** The user's entry in the draw of a sale. */
export function drawEntry(store: Kept, saleId: string): DrawEntry | null {
  try {
    return JSON.parse(store.getItem(DRAW + saleId) ?? 'null');
  } catch {
    return null;
  }
}

/** Stores the user's entry in the draw of a sale. */
export function storeDrawEntry(store: Kept, saleId: string, value: DrawEntry): void {
  store.setItem(DRAW + saleId, JSON.stringify(value));
}
