/** The draw of an item on the page of its sale. */
import { useSignal } from '@preact/signals';
import { request } from '../api/client';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { DrawEntries } from '../documents/draw-entries';
import { EnterDrawValue } from '../documents/interventions';
import { clockTime, count, moment } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import type { AdminSale } from './acts';
import { acted } from './asked';
import { Field, Form, Note } from './form';
import { ot } from './texts';

interface Props {
  itemId: string;
  name: string;
  drawing: NonNullable<AdminSale['items'][number]['drawing']>;
  /** Called after a value was entered. */
  asked: () => void;
}

/** After this time a draw that waits for its round is late, in ms. */
const LATE_MS = 3_600_000;

/** How many entered and how far the draw is. Its order shows in the record alone, once it is drawn. */
export function Drawing({ itemId, name, drawing: { state, entries, recordPath, source, roundAt }, asked }: Props) {
  const entering = useSignal(false);
  const waits = state === 'PUBLISHED';
  const late = waits && roundAt && Date.now() - Date.parse(roundAt) > LATE_MS;
  return (
    <div class="mt-3 grid gap-2 text-sm">
      <p>
        {ot('op.drawing')} · <bdi>{name}</bdi>: {ot('op.entries', { n: count(entries) })}, {ot(waits && source === 'operator' ? 'op.drawing.VALUE' : `op.drawing.${state}`)}{' '}
        {recordPath && (
          <a class="link" href={recordPath} download>
            {ot('op.record')}
          </a>
        )}
      </p>
      {late && <p class="note text-warn">{ot('op.drawing.late', { time: moment(roundAt) })}</p>}
      {waits && source === 'operator' && (
        <button class="btn justify-self-start" onClick={() => (entering.value = true)}>
          {ot('op.drawValue.enter')}
        </button>
      )}
      <Entries itemId={itemId} />
      {entering.value && <Value itemId={itemId} name={name} close={() => (entering.value = false)} done={asked} />}
    </div>
  );
}

/** The server counts all entries for each look. */
const REFRESH_MS = 60_000;
const WIDTH = 300;
const HEIGHT = 48;

/** The entries by minute, or by longer intervals, as bars. The text names the busiest interval. */
function Entries({ itemId }: { itemId: string }) {
  const { page, reload } = useLoad(`entries ${itemId}`, async (signal) => (await request(DrawEntries, { itemId }, signal)).drawEntries);
  useRefresh(reload, REFRESH_MS);
  const found = page.value.state === 'ready' ? page.value.data : null;
  const [first, last] = [found?.points[0], found?.points.at(-1)];
  if (!found || !first || !last) return null;
  const step = found.seconds * 1000;
  const from = Date.parse(first.at);
  const slots = (Date.parse(last.at) - from) / step + 1;
  const top = found.points.reduce((best, point) => (point.entries > best.entries ? point : best), first);
  const text = ot('op.entries.most', { minutes: count(found.seconds / 60), n: count(top.entries), time: slots * step < 86_400_000 ? clockTime(Date.parse(top.at)).slice(0, 5) : moment(top.at) });
  return (
    <figure class="grid max-w-sm gap-1">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} class="h-12 w-full border-b border-line text-main" preserveAspectRatio="none" aria-hidden="true" data-entries>
        {found.points.map(({ at, entries }) => {
          const height = (entries / top.entries) * HEIGHT;
          return <rect key={at} x={((Date.parse(at) - from) / step / slots) * WIDTH} y={HEIGHT - height} width={Math.min(WIDTH / slots, 24)} height={height} fill="currentColor" />;
        })}
      </svg>
      <figcaption class="text-soft">{text}</figcaption>
    </figure>
  );
}

function Value({ itemId, name, close, done }: { itemId: string; name: string; close: () => void; done: () => void }) {
  return (
    <Dialog title={ot('op.named', { name: ot('op.drawValue.enter'), text: name })} close={close}>
      <Form
        label={ot('op.drawValue.ask')}
        send={async ({ value = '', source = '', note = '' }) => {
          const { enterDrawValue } = await request(EnterDrawValue, { input: { itemId, value, source, note } });
          if (enterDrawValue?.intervention) acted(enterDrawValue.intervention);
          return enterDrawValue?.userErrors[0];
        }}
        done={() => {
          close();
          done();
        }}
      >
        <p>{ot('op.drawValue.how')}</p>
        <Field label={ot('op.drawValue')}>
          <input name="value" class="field font-normal" required />
        </Field>
        <Field label={ot('op.drawValueSource')}>
          <input name="source" class="field font-normal" required />
        </Field>
        <Note label={ot('op.reason')} required />
      </Form>
    </Dialog>
  );
}
