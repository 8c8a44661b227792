/** The report of a sale as a page, on paper and as a file, and the export of its orders. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { Fault, toFault } from '@seckill/client/fault';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { bearer } from '../api/session';
import { EarlierSales, ReportedSale, Report as ReportDoc } from '../documents/interventions';
import { faultText, isolate, moment } from '../i18n/text';
import { FaultMessage, Loading, SaleNotFound, Stale, Title } from '../ui/bits';
import { useTitle } from '../ui/title';
import type { AdminSale } from './acts';
import { useQuery } from './search';
import { Pick, type Found } from './pick';
import { save } from './save';
import { ot } from './texts';

/** Saves an export of the server; returns why not, null = done. */
export async function saveFile(address: string, name: string): Promise<string | null> {
  try {
    const token = await bearer();
    const response = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Fault('UNAVAILABLE', '');
    save(await response.blob(), name);
    return null;
  } catch (thrown) {
    return faultText(toFault(thrown));
  }
}

/** The ways to the report and to the orders as a file. */
export function Downloads({ sale }: { sale: AdminSale }) {
  const why = useSignal<string | null>(null);
  const orders = async (): Promise<void> => {
    why.value = await saveFile(`/exports/orders.csv?sale=${sale.id}`, `${sale.slug}-orders.csv`);
  };
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{ot('op.downloads')}</h2>
      <div class="flex flex-wrap gap-3">
        <Link class="btn" href={`/operate/sales/${sale.id}/report`}>
          {ot('op.report')}
        </Link>
        <button class="btn" onClick={() => void orders()}>
          {ot('op.csv')}
        </button>
      </div>
      {why.value && <p role="alert">{why.value}</p>}
    </section>
  );
}

/** The page: the document that is also the file, with what can be done with it. */
export function ReportPage({ id }: { id: string }) {
  const [compared, compare] = useQuery('compare');
  const { page, reload } = useLoad(`report ${id} ${compared}`, async (signal) => {
    const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    return (await request(ReportDoc, { saleId: id, compareTo: compared || null, timeZone }, signal)).saleReport;
  });
  useTitle(ot('op.report'));
  const shown = page.value;
  if (shown.state === 'missing') return <SaleNotFound again={reload} />;
  return (
    <>
      <Tools id={id} compared={compared} compare={compare} html={shown.state === 'ready' ? shown.data.html : null} />
      {shown.state === 'loading' && <Loading />}
      {shown.state === 'failed' && <FaultMessage fault={shown.fault} again={reload} />}
      {shown.state === 'ready' && (
        <>
          <Stale fault={shown.fault} again={reload} />
          <ReportDocument html={shown.data.html} />
        </>
      )}
    </>
  );
}

interface ToolsProps {
  id: string;
  compared: string;
  compare: (id: string) => void;
  html: string | null;
}

/** The latest sales that ended before a time and whose titles contain a text. */
async function findEarlier(before: string, text: string, signal: AbortSignal): Promise<Found> {
  const { sales } = await request(EarlierSales, { before, search: text || null }, signal);
  return {
    choices: sales?.edges.map(({ node }) => ({ value: node.id, label: `${isolate(node.title)} · ${moment(node.startsAt)}` })) ?? [],
    more: sales?.pageInfo.hasNextPage ?? false,
  };
}

function Tools({ id, compared, compare, html }: ToolsProps) {
  const { page } = useLoad(`report-tools ${id}`, async (signal) => {
    const { sale } = await request(ReportedSale, { saleId: id }, signal);
    return sale && { slug: sale.slug, before: sale.startsAt, earlier: await findEarlier(sale.startsAt, '', signal) };
  });
  const known = page.value.state === 'ready' ? page.value.data : null;
  return (
    <div class="mb-6 flex flex-wrap items-end gap-3 print:hidden">
      <div class="w-full">
        <Title>{ot('op.report')}</Title>
      </div>
      <Link class="btn" href={`/operate/sales/${id}`}>
        {ot('op.back')}
      </Link>
      <button class="btn" disabled={!html} onClick={() => print()}>
        {ot('op.print')}
      </button>
      <button class="btn" disabled={!html} onClick={() => html && save(new Blob([html], { type: 'text/html' }), `${known?.slug ?? 'report'}.html`)}>
        {ot('op.saveFile')}
      </button>
      {known && known.earlier.choices.length > 0 && (
        <div class="max-sm:w-full sm:w-80">
          <Pick
            label={ot('op.compare')}
            findLabel={ot('op.pick.sale')}
            list={`earlier ${known.before}`}
            first={known.earlier}
            find={(text, signal) => findEarlier(known.before, text, signal)}
            value={compared}
            kept={ot('op.chosenSale')}
            none="–"
            change={compare}
          />
        </div>
      )}
    </div>
  );
}

/** The report with its own styles, as the file has them. The content policy of the page forbids style elements, so they become a style sheet. */
function ReportDocument({ html }: { html: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [before = '', styles = '', after = ''] = html.split(/<\/?style>/);
    const written = new DOMParser().parseFromString(before + after, 'text/html');
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    const root = box.current!.shadowRoot ?? box.current!.attachShadow({ mode: 'open' });
    root.adoptedStyleSheets = [sheet];
    root.replaceChildren(...written.body.childNodes);
  }, [html]);
  return <div ref={box} class="paper" />;
}
