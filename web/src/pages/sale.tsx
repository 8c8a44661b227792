/** The page of a sale: what is sold, what is left, and the status sheet. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useLocation, useSearch } from 'wouter-preact';
import { now } from '../api/clock';
import { cards, putPublicSale, putSale, sales, stocks } from '../api/stores';
import { Fault } from '@seckill/client/fault';
import { follow } from '../api/client';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import type { Item, Sale, Stock } from '@seckill/client/types';
import { SaleBySlug, SaleStatus, SaleStock } from '@seckill/client/documents/sale';
import { askEarly } from '../captcha/ahead';
import { purchaseOf } from '../purchase/attempt';
import { stockAfter } from '../purchase/refusal';
import { BuyBox } from '../purchase/buybox';
import { Checklist } from '../purchase/checklist';
import { Remind } from '../purchase/remind';
import { isOver, opensFor, phaseAt, usePhase } from '../purchase/button';
import { SaleNotFound, Stale, Title, Unready } from '../ui/bits';
import { useCountedTitle } from '../ui/title';
import { Attempts } from './attempts';
import { DrawCheck, DrawnItem } from './draw-check';
import { CodeForm, CodeWaits, useLinkedCode, type LinkedCode } from './sale-code';
import { quantityOf, SaleOutline, SaleView } from './sale-view';

export { SalePreview } from './sale-preview'; // exported here, so that it shares the chunk of this page

const POLL_MS = 3_000;
/** The page with room for the status sheet at the foot of a phone. */
const PAGE = 'page max-lg:pb-[max(20rem,calc(var(--sheet,0px)+2rem))]';
/** Within how long all viewers read what they may do after a change that they see at the same moment. */
const SPREAD_MS = 1_000;

/** Reads a sale by its slug and keeps it. */
async function ask(slug: string, signal?: AbortSignal): Promise<Sale | null> {
  const { sale } = await request(SaleBySlug, { slug }, signal);
  if (sale) putSale(sale);
  if (sale && !sale.viewer && currentUser.peek()) throw new Fault('UNAVAILABLE', 'the server did not answer for the viewer');
  return sale;
}

/** Whether the newest known phase is final; the server then completes the subscriptions. */
const hasEnded = (id: string): boolean => isOver(sales.of(id).peek()?.phase ?? 'UPCOMING');

/** Follows a sale and its stock while the page is open. */
function useSale(id: string | null, slug: string): void {
  useEffect(() => {
    if (!id) return;
    const poll = async (signal: AbortSignal): Promise<number | null> => {
      await ask(slug, signal);
      return hasEnded(id) ? null : POLL_MS;
    };
    const closed = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readViewer = (within: number) => {
      if (!currentUser.peek()) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        ask(slug, closed.signal).catch(() => closed.signal.aborted || readViewer(POLL_MS));
      }, Math.random() * within);
    };
    const stops = [
      follow(SaleStatus, { id }, {
        next: ({ saleStatus: { kind, sale } }) => {
          const known = sales.of(id).peek();
          putPublicSale(sale);
          // What a viewer may do at the opening follows from the clock: thousands of pages do not ask in that second.
          const opens = kind === 'UPDATE' && known?.phase === 'UPCOMING' && sale.phase === 'LIVE';
          if (!opens) readViewer(known?.revision === sale.revision ? 0 : SPREAD_MS);
          return hasEnded(id);
        },
        failed: () => {},
        poll,
      }),
      follow(SaleStock, { id }, {
        next: ({ saleStock }) => {
          for (const item of saleStock.items) stocks.put(item.id, item.stock);
          return hasEnded(id);
        },
        failed: () => {},
        poll: () => Promise.resolve(hasEnded(id) ? null : 60_000), // the poll of the sale includes the stock
      }),
    ];
    return () => {
      closed.abort();
      clearTimeout(timer);
      stops.forEach((stop) => stop());
    };
  }, [id]);
}

export function SalePage({ slug }: { slug: string }) {
  const { page, reload } = useLoad(`sale ${slug}`, (signal) => ask(slug, signal));
  const loaded = page.value.state === 'ready' ? page.value : null;
  useSale(loaded?.data.id ?? null, slug);
  const code = useLinkedCode(slug, reload);
  const card = cards.get(slug);
  const open = page.value.state === 'loading' && currentUser.value && card?.mode === 'RUSH' && phaseAt(card, now()) === 'LIVE' ? card.id : null;
  useEffect(() => {
    if (open) askEarly(open);
  }, [open]);
  if (page.value.state === 'loading' && card) return <div class={PAGE}><SaleOutline sale={card} /></div>;
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} inset missing={<div class="page"><CodeNote code={code} /><SaleNotFound again={reload} /></div>} />;
  const sale = sales.of(page.value.data.id).value ?? page.value.data;
  return (
    <div class={PAGE}>
      <Stale fault={page.value.fault} again={reload} />
      <CodeNote code={code} />
      <Shown sale={sale} reload={reload} />
    </div>
  );
}

/** What became of the code of a link. */
function CodeNote({ code }: { code: LinkedCode }) {
  if (code.waits) return <CodeWaits />;
  return code.why && <p class="note mb-4 text-warn" role="alert">{code.why}</p>;
}

/** The chosen item: the one in the address, else that of the order or the waitlist, else the first. */
function useItem(sale: Sale): [Item | undefined, (id: string) => void] {
  const asked = new URLSearchParams(useSearch()).get('item');
  const [where, go] = useLocation();
  const { order, waitlistEntry } = sale.viewer ?? {};
  const held = order?.status === 'PENDING_PAYMENT' ? order.item.id : null;
  const offered = waitlistEntry && ['WAITING', 'OFFERED'].includes(waitlistEntry.status) ? waitlistEntry.item.id : null;
  const wanted = asked ?? held ?? offered ?? order?.item.id;
  const item = sale.items.find(({ id }) => id === wanted) ?? sale.items[0];
  return [item, (id) => go(`${where}?item=${encodeURIComponent(id)}`, { replace: true })];
}

function Shown({ sale, reload }: { sale: Sale; reload: () => void }) {
  const [item, choose] = useItem(sale);
  const wanted = useSignal(1);
  const phase = usePhase(sale);
  useCountedTitle(sale.title, phase === 'UPCOMING' ? opensFor(sale) : null);
  if (!item) return <Title><bdi>{sale.title}</bdi></Title>;
  const attempt = purchaseOf(sale.id, reload).attempt.value;
  const stockOf = ({ id, stock }: Pick<Item, 'id' | 'stock'>): Stock => stockAfter(attempt, id, stocks.of(id).value ?? stock);
  const quantity = quantityOf(sale, item, wanted.value);
  return (
    <SaleView
      sale={sale}
      item={item}
      phase={phase}
      stockOf={stockOf}
      choose={choose}
      wanted={wanted.value}
      want={(n) => (wanted.value = n)}
      sheet={<BuyBox sale={sale} item={item} stock={stockOf(item)} quantity={quantity} signedIn={currentUser.value !== null} reload={reload} choose={choose} />}
      checklist={<Checklist sale={sale} />}
      remind={<Remind sale={sale} />}
    >
      {currentUser.value && <CodeForm sale={sale} reload={reload} />}
      {currentUser.value && <DrawCheck sale={sale} phase={phase} />}
      <DrawnItem key={item.id} sale={sale} item={item} />
      {currentUser.value && <Attempts sale={sale} phase={phase} />}
    </SaleView>
  );
}
