/** What the check of a draw finds. */
import { checkDraw } from '@seckill/client/fairness';
import type { DrawEntry } from '@seckill/client/tickets';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { TicketDraw } from '../documents/draw';
import { count, loadTexts } from '../i18n/text';
import { SuccessMessage, Unready } from '../ui/bits';
import { Icon } from '../ui/icons';
import { dt, texts } from './draw-texts';

/** Loads the texts of this part. */
export const prepare = (): Promise<void> => loadTexts((of) => Promise.resolve(texts[of]));

/** The numbers of a draw are 1 to 2^52. */
const NUMBERS = 2 ** 52;

/** What was compared; `number` is that of the shop, `computed` the one that follows. */
interface Compared {
  state: 'compared';
  commitment: boolean;
  seed: boolean;
  number: boolean;
  values: { commitment: string; seed: string; number: string; computed: string };
}

type Outcome = Compared | { state: 'soon' | 'gone' | 'insecure' };

/** Compares what the shop says of a ticket with what this browser kept before the opening. */
export async function compare(part: DrawEntry, signal?: AbortSignal): Promise<Outcome> {
  const { node } = await request(TicketDraw, { id: part.ticketId }, signal);
  const draw = node?.__typename === 'QueueTicket' ? node.item.draw : null;
  const own = node?.__typename === 'QueueTicket' ? node.draw : null;
  if (!draw || !own) return { state: 'gone' };
  if (!draw.seed || !own.number) return { state: 'soon' };
  if (!globalThis.crypto?.subtle) return { state: 'insecure' };
  const { committed, number } = await checkDraw({ commitment: part.commitment, seed: draw.seed, nonce: part.nonce });
  return {
    state: 'compared',
    commitment: draw.commitment === part.commitment,
    seed: committed,
    number: own.nonce === part.nonce && own.number === number,
    values: { commitment: part.commitment, seed: draw.seed, number: own.number, computed: number ?? '–' },
  };
}

/** The outcome, computed when it is shown. */
export function Draw({ part }: { part: DrawEntry }) {
  const { page, reload } = useLoad(`draw ${part.ticketId}`, (signal) => compare(part, signal));
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} />;
  const found = page.value.data;
  return (
    <div class="mt-3 grid gap-3 text-sm">
      <p class="text-soft">{dt('draw.how')}</p>
      {found.state === 'compared' ? <Shown part={part} found={found} /> : <p role="status">{dt(`draw.${found.state}`)}</p>}
      {found.state === 'soon' && (
        <button class="btn justify-self-start" onClick={reload}>
          {dt('draw.again')}
        </button>
      )}
    </div>
  );
}

const steps = ['commitment', 'seed', 'number'] as const;

function Shown({ part, found }: { part: DrawEntry; found: Compared }) {
  const right = steps.every((step) => found[step]);
  const share = count(Math.floor((Number(found.values.computed) / NUMBERS) * 100) || 0);
  return (
    <>
      <div role={right ? 'status' : 'alert'}>{right ? <SuccessMessage>{dt('draw.right')}</SuccessMessage> : <p class="font-medium text-danger">{dt('draw.wrong')}</p>}</div>
      <ul class="grid gap-2">
        {steps.map((step) => (
          <li key={step} class={`flex gap-2 ${found[step] ? '' : 'text-danger'}`} data-step={step} data-right={found[step]}>
            <span class={`shrink-0 ${found[step] ? 'text-good' : ''}`}>
              <Icon name={found[step] ? 'check' : 'close'} />
            </span>
            {dt(found[step] ? `draw.${step}` : `draw.${step}Not`, { n: share })}
          </li>
        ))}
      </ul>
      <Values part={part} found={found} />
    </>
  );
}

/** The values, to check them with another program. */
function Values({ part, found: { values } }: { part: DrawEntry; found: Compared }) {
  const rows = [
    [dt('draw.valueCommitment'), values.commitment],
    [dt('draw.valueSeed'), values.seed],
    [dt('draw.valueNonce'), part.nonce],
    [dt('draw.valueNumber'), values.number],
    [dt('draw.valueComputed'), values.computed],
  ] as const;
  return (
    <details>
      <summary class="min-h-8 cursor-pointer">{dt('draw.values')}</summary>
      <dl class="mt-1 grid gap-1">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt class="text-soft">{name}</dt>
            <dd class="notranslate break-all tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
