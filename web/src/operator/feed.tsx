/** What happened in a sale, from its start, in the language in use. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { follow } from '../api/client';
import { Feed as FeedDoc } from '../documents/figures';
import { lang } from '../i18n/lang';
import { DateTime } from '../ui/bits';
import { ot } from './texts';

/** Lines that are kept. */
const LINES = 200;
/** The cursor before the first line. */
const START = '0-0';

interface Line {
  cursor: string;
  at: string;
  message: string | null;
  order: { id: string; number: string } | null;
}

/** The time in a cursor as an ISO string; `other` if the cursor has none. */
const instant = (cursor: string, other: string): string => {
  const ms = Number(cursor.split('-')[0]);
  return ms ? new Date(ms).toISOString() : other;
};

/** The feed, newest first. */
export function Feed({ id }: { id: string }) {
  const lines = useSignal<Line[]>([]);
  useEffect(() => {
    lines.value = [];
    let fresh: Line[] = []; // entries that arrive together, such as the history, are rendered once
    let frame = 0;
    const show = (): void => {
      frame = 0;
      lines.value = [...fresh, ...lines.peek()].slice(0, LINES);
      fresh = [];
    };
    const where: { id: string; after: string | null } = { id, after: START }; // where a new connection resumes
    const stop = follow(FeedDoc, where, {
      next: ({ saleFeed: { kind, cursor, serverTime, message, order } }) => {
        where.after = cursor;
        const text = kind === 'GAP' ? ot('op.feedGap') : message;
        if (text || order) {
          fresh = [{ cursor, at: instant(cursor, serverTime), message: text, order }, ...fresh].slice(0, LINES);
          frame ||= requestAnimationFrame(show);
        }
        return false;
      },
      failed: () => {},
      poll: () => Promise.resolve(60_000), // the feed has no query
    });
    return () => {
      cancelAnimationFrame(frame);
      stop();
    };
  }, [id, lang.value]);
  return (
    <div>
      <h3 class="mb-2 font-semibold">{ot('op.feed')}</h3>
      {!lines.value.length && <p class="text-sm text-soft">{ot('op.feedEmpty')}</p>}
      <ol class="grid max-h-96 gap-1 overflow-y-auto text-sm" tabIndex={0} aria-label={ot('op.feed')}>
        {lines.value.map((line) => (
          <li key={line.cursor} class="flex gap-x-3 max-sm:flex-col">
            <span class="shrink-0 text-soft">
              <DateTime at={line.at} />
            </span>
            <span>
              {line.message}{' '}
              {line.order && (
                <Link class="link" href={`/orders/${line.order.id}`}>
                  {line.order.number}
                </Link>
              )}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}
