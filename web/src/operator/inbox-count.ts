/** The number of inbox entries, from a subscription. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { follow, request } from '../api/client';
import { InboxCount, InboxCountNow } from '../documents/inbox';

interface Counted {
  totalCount: number;
  decidableCount: number;
}

/** The newest counts. */
export const waiting = signal<Counted>({ totalCount: 0, decidableCount: 0 });

/** Poll interval in ms, where subscriptions are blocked. */
const POLL_MS = 10_000;

/** Subscribes to the count; returns the number of entries that the signed-in user can decide. */
export function useInboxCount(): number {
  useEffect(
    () =>
      follow(InboxCount, {}, {
        next: ({ inboxCount }) => {
          waiting.value = inboxCount;
          return false;
        },
        failed: () => {},
        poll: async (signal) => {
          const { inbox } = await request(InboxCountNow, {}, signal);
          if (inbox) waiting.value = inbox;
          return POLL_MS;
        },
      }),
    [],
  );
  return waiting.value.decidableCount;
}
