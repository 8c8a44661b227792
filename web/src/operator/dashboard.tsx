/** The figures of a running sale, once a second. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import { Fault } from '@seckill/client/fault';
import { follow } from '../api/client';
import { useLoad, type LoadState } from '../api/load';
import { request } from '../api/client';
import { Figures as FiguresDoc, FiguresLive } from '../documents/figures';
import { count, textOr, money, span } from '../i18n/text';
import { FaultMessage, Stale, DateTime } from '../ui/bits';
import { extend, unitsAddUp, type Figures, type Point } from './figures';
import type { Names } from './log';
import { Plot, type Mark } from './plot';
import { hasGaps, merge } from './series';
import { ot } from './texts';

const POLL_MS = 2_000;
/** Least time between two requests for missing seconds, in ms. */
const FILL_MS = 10_000;
/** A count that begins later than this after the opening, in ms, is shown as incomplete. */
const FIRST_COUNT_MS = 5_000;

/** Milliseconds, with one decimal below ten. */
const decimals = (ms: number): string => (ms < 10 ? ms.toFixed(1) : count(Math.round(ms)));

/** The fault of a load. */
const faultIn = <T,>(page: LoadState<T>): Fault | null => ('fault' in page ? page.fault : null);

/** Loads the figures with their series. Throws a Fault if the response has no figures. */
async function load(id: string, signal: AbortSignal) {
  const { sale } = await request(FiguresDoc, { id }, signal);
  if (sale && !sale.saleStats) throw new Fault('UNAVAILABLE', 'the figures are not known');
  return sale?.saleStats ?? null;
}

interface Props {
  id: string;
  live: boolean;
  opening: string;
  /** Names of the items. */
  names?: Names;
  /** Operators' actions, for the chart. */
  marks?: readonly Mark[];
}

/** The figures and the chart of a sale. */
export function Dashboard({ id, live, opening, names = {}, marks = [] }: Props) {
  // Load the figures again when the sale ends: the last pushed ones are not final.
  const { page, reload } = useLoad(`figures ${id} ${live}`, (signal) => load(id, signal));
  const { figures, series } = useMemo(() => ({ figures: signal<Figures | null>(null), series: signal<Point[]>([]) }), [id]);

  /** Keeps figures unless newer ones are known: pushed figures and responses may arrive out of order. */
  const take = (next: Figures): void => {
    const last = figures.peek();
    if (last && Date.parse(next.at) < Date.parse(last.at)) return;
    figures.value = next;
    series.value = extend(series.peek(), next);
  };

  const loaded = page.value.state === 'ready' ? page.value.data : null;
  useEffect(() => {
    if (!loaded) return;
    // A response has complete seconds, so it replaces the pushed points.
    const points = loaded.series.map(({ at, requests, orders, remainingUnits }) => ({
      at: Math.floor(Date.parse(at) / 1000),
      requests,
      orders,
      left: remainingUnits,
    }));
    series.value = merge(series.peek(), points);
    take(loaded);
  }, [loaded, series]);

  useEffect(() => {
    if (!live) return undefined;
    let filled = 0;
    return follow(FiguresLive, { id }, {
      next: ({ saleStats: { saleStats } }) => {
        take(saleStats);
        const at = Date.parse(saleStats.at);
        if (hasGaps(series.peek()) && at - filled >= FILL_MS) {
          filled = at;
          void reload();
        }
        return false;
      },
      failed: () => {},
      poll: async () => {
        await reload();
        const fault = faultIn(page.peek());
        if (fault) throw fault;
        return POLL_MS;
      },
    });
  }, [id, live, reload]);

  const now = figures.value;
  const fault = faultIn(page.value);
  if (!now) return fault ? <FaultMessage fault={fault} again={reload} /> : <div class="min-h-dvh" />; // reserves the space, to avoid a layout shift
  return (
    <section class="card grid grid-cols-1 gap-5 p-5" aria-labelledby="figures">
      <h2 id="figures" class="head">
        {ot('op.figures')}
      </h2>
      <Stale fault={fault} again={reload} />
      {now.countedSince && Date.parse(now.countedSince) - Date.parse(opening) >= FIRST_COUNT_MS && (
        <p class="note text-warn">
          {ot('op.countedSince')} <DateTime at={now.countedSince} />
        </p>
      )}
      <dl class="grid grid-cols-[repeat(auto-fit,minmax(min(100%,7rem),1fr))] gap-x-4 gap-y-5 sm:grid-cols-12">
        <Figure large name={ot('op.remaining')}>{count(now.remainingUnits)}</Figure>
        <Figure large name={ot('op.paid')}>{count(now.paidUnits)}</Figure>
        <Figure large name={ot('op.gmv')}>{money(now.netValue)}</Figure>
        <Figure large name={ot('op.perSecond')}>{count(Math.round(now.ordersPerSecond))}</Figure>
        <Figure name={ot('op.pending')}>{count(now.unpaidUnits)}</Figure>
        <Figure name={ot('op.onOffer')}>{count(now.offeredUnits)}</Figure>
        <Figure name={ot('op.onWaitlist')}>{count(now.waitingBuyers)}</Figure>
        <Figure name={ot('op.requests')}>{count(Math.round(now.requestsPerSecond))}</Figure>
        <Figure name={ot('op.queue')}>
          {count(now.queueDepth)}
          {now.queueAgeSeconds >= 1 && <small class="font-normal text-soft"> · {span(Math.round(now.queueAgeSeconds))}</small>}
        </Figure>
        <Figure name={ot('op.p99')}>{decimals(now.p99Ms)} ms</Figure>
      </dl>
      <Sum figures={now} />
      <Plot series={series.value} marks={marks} />
      <Items figures={now} names={names} />
      <div class="grid items-start gap-6 lg:grid-cols-2">
        <Funnel figures={now} />
        <Refused figures={now} />
      </div>
    </section>
  );
}

/** A figure; the large ones say how the sale goes, the small ones why. */
function Figure({ name, large, children }: { name: string; large?: boolean; children: ComponentChildren }) {
  return (
    <div class={`flex min-w-0 flex-col-reverse justify-end ${large ? 'sm:col-span-3' : 'sm:col-span-2'}`} data-figure={large ? 'large' : 'small'}>
      <dt class="text-sm text-soft">{name}</dt>
      <dd class={large ? 'numeral text-3xl sm:text-4xl' : 'font-semibold tabular-nums'}>{children}</dd>
    </div>
  );
}

/** The equation of stock, which must hold at every moment. */
function Sum({ figures }: { figures: Figures }) {
  const holds = unitsAddUp(figures);
  return (
    <p class={`note flex flex-wrap justify-between gap-2 font-medium tabular-nums ${holds ? 'text-good' : 'text-danger'}`} role={holds ? undefined : 'alert'}>
      <span>{ot(holds ? 'op.sumHolds' : 'op.sumBroken')}</span>
      <span>
        {ot('op.sum', {
          left: count(figures.remainingUnits),
          pending: count(figures.pendingUnits),
          paid: count(figures.paidUnits),
          total: count(figures.totalUnits),
        })}
      </span>
    </p>
  );
}

/** Units and waitlist by item. */
function Items({ figures, names }: { figures: Figures; names: Names }) {
  const head = [ot('op.sellThrough'), ot('op.pending'), ot('op.onOffer'), ot('op.onWaitlist')];
  return (
    <div class="overflow-x-auto" role="region" tabIndex={0} aria-label={ot('op.byItem')}>
      <table class="w-full text-left tabular-nums">
        <thead class="text-sm text-soft">
          <tr>
            <th class="py-1 font-medium">{ot('op.byItem')}</th>
            {head.map((each) => (
              <th key={each} class="py-1 pl-3 text-right font-medium">
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.items.map((item) => (
            <tr key={item.itemId} class="border-t border-line">
              <td class="min-w-32 py-2">
                <bdi>{names[item.itemId] ?? item.itemId}</bdi>
              </td>
              <td class="py-2 pl-3 text-right whitespace-nowrap">
                {ot('op.sold', { percent: Math.floor((100 * item.paidUnits) / Math.max(1, item.totalUnits)), paid: count(item.paidUnits), total: count(item.totalUnits) })}
              </td>
              {[item.unpaidUnits, item.offeredUnits, item.waitingBuyers].map((n, i) => (
                <td key={i} class="py-2 pl-3 text-right">
                  {count(n)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How many buyers reached each step. */
function Funnel({ figures }: { figures: Figures }) {
  const steps: [string, number][] = [
    [ot('op.funnel.captcha'), figures.captchas],
    [ot('op.funnel.path'), figures.paths],
    [ot('op.funnel.asked'), figures.requests],
    [ot('op.funnel.accepted'), figures.accepted],
    [ot('op.funnel.ordered'), figures.orders],
    [ot('op.funnel.paid'), figures.paidOrders + figures.refundedOrders],
  ];
  return (
    <div>
      <h3 class="mb-2 font-semibold">{ot('op.funnel')}</h3>
      <Bars rows={steps} most={Math.max(...steps.map(([, n]) => n))} colour="bg-good" />
      {figures.expiredOrders > 0 && <p class="mt-2 text-sm text-soft">{ot('op.expired', { n: count(figures.expiredOrders) })}</p>}
      {figures.refundedOrders > 0 && <p class="mt-2 text-sm text-soft">{ot('op.paidBack', { n: count(figures.refundedOrders) })}</p>}
    </div>
  );
}

/** Figures as bars. */
function Bars({ rows, most, colour }: { rows: [string, number][]; most: number; colour: string }) {
  return (
    <ul class="grid gap-2 text-sm">
      {rows.map(([name, n]) => (
        <li key={name}>
          <span class="flex justify-between gap-3 tabular-nums">
            <span>{name}</span>
            <span>{count(n)}</span>
          </span>
          <span class="mt-1 block h-1.5 rounded-full bg-sunk">
            <span class={`block h-full rounded-full ${colour}`} style={{ width: `${most ? (n / most) * 100 : 0}%` }} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Refusals of every stage by reason, the most frequent first. */
function Refused({ figures }: { figures: Figures }) {
  const rows = figures.gate
    .flatMap(({ stage, rejections }) => rejections.map((row) => ({ ...row, stage })))
    .filter((row) => row.count > 0)
    .sort((a, b) => b.count - a.count);
  if (!rows.length) return null;
  return (
    <div>
      <h3 class="mb-2 font-semibold">{ot('op.refused')}</h3>
      <Bars rows={rows.map((row) => [ot('op.named', { name: ot(`op.stage.${row.stage}`), text: textOr(`op.why.${row.code}`, row.code) }), row.count])} most={rows[0]!.count} colour="bg-warn" />
    </div>
  );
}
