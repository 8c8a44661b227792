/** Exports of a sale: the report and its orders. */
import { useSignal } from '@preact/signals';
import { Fault, toFault } from '../api/fault';
import { request } from '../api/request';
import { bearer } from '../api/session';
import { Report } from '../documents/interventions';
import { apologise } from '../i18n/text';
import type { AdminSale } from './acts';
import { ot } from './texts';

/** Downloads a blob under a name. */
function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The buttons. */
export function Downloads({ sale }: { sale: AdminSale }) {
  const why = useSignal<string | null>(null);
  const findings = useSignal<readonly string[]>([]);
  const run = (work: () => Promise<void>) => async (): Promise<void> => {
    try {
      await work();
      why.value = null;
    } catch (thrown) {
      why.value = apologise(toFault(thrown));
    }
  };
  const report = run(async () => {
    const { saleReport } = await request(Report, { saleId: sale.id });
    if (!saleReport) throw new Fault('NOT_FOUND', '');
    findings.value = saleReport.findings;
    save(new Blob([saleReport.html], { type: 'text/html' }), `${sale.slug}.html`);
  });
  const orders = run(async () => {
    const token = await bearer();
    const response = await fetch(`/exports/orders.csv?sale=${sale.id}`, { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Fault('UNAVAILABLE', '');
    save(await response.blob(), `${sale.slug}-orders.csv`);
  });
  return (
    <section class="card grid gap-3 p-5">
      <h2 class="head">{ot('op.downloads')}</h2>
      <div class="flex flex-wrap gap-3">
        <button class="btn" onClick={() => void report()}>
          {ot('op.report')}
        </button>
        <button class="btn" onClick={() => void orders()}>
          {ot('op.csv')}
        </button>
      </div>
      {why.value && <p role="alert">{why.value}</p>}
      {findings.value.map((finding) => (
        <p key={finding} class="text-danger" role="alert">
          {finding}
        </p>
      ))}
    </section>
  );
}
