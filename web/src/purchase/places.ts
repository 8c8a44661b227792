/** Places in waiting rooms, kept per tab. Every page reads them. */

import { forTab } from '../api/storage';

const PLACE = 'place:';

/** A place in the waiting room, until its turn is used or has expired. */
export interface Place {
  ticketId: string;
  itemId: string;
  /** The title of the sale. */
  title: string;
  /** The slug of the sale. */
  slug: string;
  /** Whether the button was pressed: then the order is sent when the turn comes. */
  pressed: boolean;
}

/** The place in the waiting room of a sale. */
export function place(saleId: string): Place | null {
  try {
    return JSON.parse(forTab.getItem(PLACE + saleId) ?? 'null');
  } catch {
    return null;
  }
}

/** The sales in whose waiting rooms the tab has a place. */
export function waitingFor(): string[] {
  return forTab.names().flatMap((name) => (name.startsWith(PLACE) ? [name.slice(PLACE.length)] : []));
}

/** Remembers the place across reloads, or forgets it. */
export function keepPlace(saleId: string, value: Place | null): void {
  if (value) forTab.setItem(PLACE + saleId, JSON.stringify(value));
  else forTab.removeItem(PLACE + saleId);
}
