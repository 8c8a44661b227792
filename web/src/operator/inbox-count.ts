/** How much waits for a person, pushed. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { follow, request } from '../api/client';
import { InboxCount, InboxCountNow } from '../documents/inbox';

interface Counted {
  totalCount: number;
  decidableCount: number;
}

/** How much waits, as last pushed. */
export const waiting = signal<Counted>({ totalCount: 0, decidableCount: 0 });

/** Pause between polls, where nothing can be pushed. */
const POLL_MS = 10_000;

/** Follows the count, and returns how much waits for this person. */
export function useInboxCount(): number {
  useEffect(
    () =>
      follow(InboxCount, {}, {
        next: ({ inboxCount }) => {
          waiting.value = inboxCount;
          return false;
        },
        failed: () => {},
        poll: async () => {
          const { inbox } = await request(InboxCountNow, {});
          if (inbox) waiting.value = inbox;
          return POLL_MS;
        },
      }),
    [],
  );
  return waiting.value.decidableCount;
}
