/** What happened in a sale, as one list: the pushed feed of orders and states, and the audit log. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { follow } from '../api/client';
import { Feed as FeedDoc } from '../documents/figures';
import { lang } from '../i18n/lang';
import { DateTime } from '../ui/bits';
import { LogEnd, LogEntry, type Entry, type Names } from './log';
import { useQuery } from './search';
import { ot } from './texts';

/** Lines that are kept. */
const LINES = 200;
/** The cursor before the first line. */
const START = '0-0';

/** A line of the feed. */
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

/** The feed of a sale, newest first; empty without an id. */
function useFeed(id: string | null): Line[] {
  const lines = useSignal<Line[]>([]);
  useEffect(() => {
    lines.value = [];
    if (!id) return;
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
  return lines.value;
}

/** What the list can be narrowed to. */
const parts = ['orders', 'stock', 'staff'] as const;
type Part = (typeof parts)[number];

type Happened = { at: string; key: string; part: Part | null; line: Line } | { at: string; key: string; part: Part; entry: Entry };

/** Within how long the feed and the log have the same act, in ms. */
const SAME_MS = 5_000;

/** Whether a line of the feed says what an entry of the log says in more detail: an act of the same person at that moment. */
const isLogged = ({ at, message, order }: Line, entries: readonly Entry[]): boolean =>
  !order && entries.some((entry) => Math.abs(Date.parse(entry.at) - Date.parse(at)) < SAME_MS && message?.startsWith(entry.actor?.displayName ?? ot('op.byClock')));

/** Feed and log in one order, newest first; what both have is there once. */
export function happened(lines: readonly Line[], entries: readonly Entry[]): Happened[] {
  const ofFeed = lines.filter((line) => !isLogged(line, entries)).map((line): Happened => ({ at: line.at, key: line.cursor, part: line.order ? 'orders' : null, line }));
  const ofLog = entries.map((entry): Happened => ({ at: entry.at, key: `${entry.at} ${entry.action}`, part: entry.action === 'ADJUST_STOCK' ? 'stock' : 'staff', entry }));
  return [...ofFeed, ...ofLog].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** The list with its filters; `live` follows the feed. */
export function Happenings({ id, live, entries, names }: { id: string; live: boolean; entries: readonly Entry[]; names: Names }) {
  const lines = useFeed(live ? id : null);
  const [asked, choose] = useQuery('show');
  const part = parts.find((each) => each === asked);
  const all = happened(lines, entries);
  const shown = part ? all.filter((each) => each.part === part) : all;
  return (
    <section class="card p-5">
      <div class="mb-3 flex flex-wrap items-center justify-between gap-3">
        <h2 class="head">{ot('op.happened')}</h2>
        <div class="flex flex-wrap gap-2" role="group" aria-label={ot('op.happened.show')}>
          {([undefined, ...parts] as const).map((each) => (
            <button key={each ?? 'all'} class="chip min-h-10 px-3 hover:border-edge aria-pressed:border-ink aria-pressed:font-semibold" aria-pressed={part === each} onClick={() => choose(each ?? '')}>
              {ot(each ? `op.happened.${each}` : 'op.all')}
            </button>
          ))}
        </div>
      </div>
      {!shown.length && <p class="text-sm text-soft">{ot('op.feedEmpty')}</p>}
      <ol class="grid max-h-[36rem] gap-3 overflow-y-auto border-l-2 border-line pl-4" tabIndex={0} aria-label={ot('op.happened')}>
        {shown.map((each) => (
          <li key={each.key} class="min-w-0">
            {'entry' in each ? (
              <LogEntry entry={each.entry} names={names} />
            ) : (
              <p class="flex gap-x-3 text-sm max-sm:flex-col">
                <span class="shrink-0 text-soft">
                  <DateTime at={each.at} />
                </span>
                <span>
                  {each.line.message}{' '}
                  {each.line.order && (
                    <Link class="link" href={`/operate/orders/${each.line.order.id}`}>
                      {each.line.order.number}
                    </Link>
                  )}
                </span>
              </p>
            )}
          </li>
        ))}
      </ol>
      {part !== 'orders' && <LogEnd entries={entries} />}
    </section>
  );
}
